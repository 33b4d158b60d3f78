//! Averages and maxima of windows of a picture.

use super::window::{Pair, Window, resized};
use super::{Bind, FLOATS, Lower, Op, Operand, Params};
use crate::error::Result;
use crate::shader::{Elem, Kernel};
use crate::source;

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new("aten.avg_pool2d.default", FLOATS, average),
    Op::new("aten.max_pool2d.default", FLOATS, maximum),
    Op::new("aten.max_pool2d_with_indices.default", FLOATS, maximum),
];

/// Arguments kernel, stride (the kernel's size when empty) and padding of operand 0.
fn window(lower: &mut Lower<'_>) -> Result<Window> {
    let kernel = lower.pair(1, 2, 1, 1)?.ok_or_else(|| lower.refuse("the window has no size"))?;
    let stride = lower.pair(2, 2, 1, 1)?.unwrap_or(kernel);
    Ok(Window { kernel, stride, padding: lower.pair(3, 2, 0, 0)?.unwrap_or_default(), dilation: [1; 2] })
}

fn average(lower: &mut Lower<'_>) -> Result<()> {
    let window = window(lower)?;
    let (ceil, padded) = (lower.boolean(4)?, lower.boolean(5)?);
    let divisor = lower.optional_int(6)?;
    if divisor == Some(0) {
        return Err(lower.refuse("the divisor is 0"));
    }
    let (out, kernel) = pooled(lower, &window, ceil)?;
    let kernel = kernel.link(source!("lib/pool_average")).flag("PADDED", padded).flag("DIVIDED", divisor.is_some());
    run(lower, &window, kernel, &[out], divisor.unwrap_or(0) as f32)
}

/// Places of the maxima, in their planes, are a second output of some forms.
fn maximum(lower: &mut Lower<'_>) -> Result<()> {
    let mut window = window(lower)?;
    window.dilation = lower.pair(4, 2, 1, 1)?.unwrap_or([1; 2]);
    let ceil = lower.boolean(5)?;
    let (out, mut kernel) = pooled(lower, &window, ceil)?;
    kernel = kernel.link(source!("lib/pool_maximum")).link(source!("lib/nan"));
    let mut outputs = vec![out];
    let mut keep = "";
    if lower.outputs() > 1 {
        let places = lower.output(1, out.dims)?;
        if places.elem != Elem::I32 {
            return Err(lower.unsupported(format!("places are {}, expected int32 or int64", places.dtype)));
        }
        outputs.push(places);
        kernel = kernel.writes("places", places.elem);
        keep = "store_places(index, i32(place));";
    }
    let kernel = kernel.function(format!("fn keep(index: u32, place: u32) {{ {keep} }}"));
    run(lower, &window, kernel, &outputs, 0.0)
}

/// The output for windows of operand 0, and the kernel that visits them.
fn pooled(lower: &mut Lower<'_>, window: &Window, ceil: bool) -> Result<(Operand, Kernel)> {
    let x = lower.tensor(0)?;
    let (_, size) = lower.picture(x)?;
    if !window.reaches_out_of_padding() {
        return Err(lower.refuse(format!("{window:?}, expected padding of at most half of a window")));
    }
    let count = window.count(lower, size, ceil)?;
    let out = lower.output(0, resized(x, count)?)?;
    lower.expect_floating_output()?;
    let kernel = window.name(Kernel::new(source!("pool"))).link(source!("lib/tap"));
    Ok((out, kernel.reads("x", x.elem).writes("out", out.elem)))
}

fn run(lower: &mut Lower<'_>, window: &Window, kernel: Kernel, outputs: &[Operand], divisor: f32) -> Result<()> {
    let x = lower.tensor(0)?;
    let (_, [rows, columns]): (_, Pair) = lower.picture(x)?;
    let Some(out) = outputs.first() else { return Ok(()) };
    let (_, [down, across]) = lower.picture(*out)?;
    let mut binds: Vec<Bind> = vec![x.into()];
    binds.extend(outputs.iter().map(|&operand| Bind::from(operand)));
    lower.expect_turns(window.turns())?;
    let count = out.dims.numel();
    let params = Params::new().u32(count).u32(down).u32(across).u32(rows).u32(columns).f32(divisor);
    lower.each(kernel, &binds, params, count)
}
