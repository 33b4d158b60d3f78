//! Operators that pick elements by the numbers in an index tensor.

use super::layout::{Layout, padded};
use super::{ALL, Lower, Op, Operand, Params};
use crate::error::Result;
use crate::graph::{Dims, Value};
use crate::shader::{Access, Elem, Kernel, RoleType};
use crate::source;

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new("aten.embedding.default", ALL, embedding).notes("an index outside the table is clamped"),
    Op::new("aten.index_select.default", ALL, index_select).notes("an index outside is clamped"),
    Op::new("aten.index.Tensor", ALL, index).notes("one integer index; one outside is clamped"),
    Op::new("aten.gather.default", ALL, gather).notes("an index outside is clamped"),
];

/// `out[c] = x[x_strides · c + stride · index[index_strides · c]]` with coordinates `c` over `sizes`.
struct Take {
    x: Operand,
    index: Operand,
    axis: usize,
    sizes: Vec<u32>,
    x_strides: Vec<u32>,
    index_strides: Vec<u32>,
}

fn embedding(lower: &mut Lower<'_>) -> Result<()> {
    let (table, index) = (lower.tensor(0)?, lower.tensor(1)?);
    along(lower, table, 0, index)
}

fn index_select(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let axis = lower.axis(1, x.dims.len())?;
    let index = lower.tensor(2)?;
    let line = Operand { dims: Dims::new(&[index.dims.numel()])?, ..index };
    along(lower, x, axis, line)
}

fn index(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let Value::List(items) = lower.value(1)? else { return Err(lower.wrong(1, "a list of tensors")) };
    let given = |(axis, &id): (usize, &_)| lower.operand(id).map(|index| (axis, index));
    let given: Vec<(usize, Operand)> = items.iter().enumerate().filter_map(given).collect();
    match given[..] {
        [(axis, index)] => along(lower, x, axis, index),
        _ => Err(lower.unsupported(format!("{} index tensors, expected one", given.len()))),
    }
}

/// Dimension `axis` of `x` becomes the dimensions of `index`.
fn along(lower: &mut Lower<'_>, x: Operand, axis: usize, index: Operand) -> Result<()> {
    let mut walk = (x.dims.to_vec(), x.dims.strides().into_iter().take(x.dims.len()).collect::<Vec<_>>());
    let mut index_strides = vec![0; x.dims.len()];
    if axis >= x.dims.len() {
        return Err(lower.refuse(format!("{} has no dimension {axis}", x.dims)));
    }
    let count = index.dims.len();
    walk.0.splice(axis..=axis, index.dims.iter().copied());
    walk.1.splice(axis..=axis, vec![0; count]);
    index_strides.splice(axis..=axis, index.dims.strides().into_iter().take(count));
    take(lower, &Take { x, index, axis, sizes: walk.0, x_strides: walk.1, index_strides })
}

fn gather(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let axis = lower.axis(1, x.dims.len())?;
    let index = lower.tensor(2)?;
    let others = x.dims.iter().zip(index.dims.iter()).enumerate();
    if x.dims.len() != index.dims.len() || others.into_iter().any(|(a, (own, asked))| a != axis && asked > own) {
        return Err(lower.refuse(format!("the index is {}, its source {}", index.dims, x.dims)));
    }
    let rank = x.dims.len();
    let still = |(a, stride): (usize, u32)| if a == axis { 0 } else { stride };
    let x_strides = x.dims.strides().into_iter().take(rank).enumerate().map(still).collect();
    let index_strides = index.dims.strides().into_iter().take(rank).collect();
    take(lower, &Take { x, index, axis, sizes: index.dims.to_vec(), x_strides, index_strides })
}

/// Bytes that are moved at once: vectors or words where neighbours have the same index, else single elements.
fn unit(layout: &Layout, stride: u32, element: u32) -> u32 {
    let (Some(&inner), [x, index]) = (layout.sizes.last(), &layout.strides[..]) else { return element };
    let (Some((1, outer)), Some(0)) = (x.split_last(), index.last()) else { return element };
    let fits = |unit: &u32| {
        let whole = |n: &u32| n.is_multiple_of(unit / element);
        whole(&inner) && whole(&stride) && outer.iter().all(whole)
    };
    [16, 4].into_iter().filter(|&unit| unit > element).find(fits).unwrap_or(element)
}

fn take(lower: &mut Lower<'_>, take: &Take) -> Result<()> {
    let Take { x, index, axis, .. } = *take;
    let out = lower.output(0, Dims::new(&take.sizes)?)?;
    let extent = x.dims.get(axis).copied().unwrap_or(1);
    if index.elem.is_float() || index.elem == Elem::Bool {
        return Err(lower.unsupported(format!("the index is {}", index.dtype)));
    }
    if out.elem != x.elem || (extent == 0 && out.dims.numel() > 0) {
        return Err(lower.refuse(format!("{} {} from {} {}", out.dtype, out.dims, x.dtype, x.dims)));
    }
    let stride = x.dims.strides().get(axis).copied().unwrap_or(1).max(1);
    let layout = Layout::new(&take.sizes, &[take.x_strides.clone(), take.index_strides.clone()]);
    let unit = unit(&layout, stride, x.elem.size());
    let wide = (unit / x.elem.size()).max(1);
    let count = out.dims.numel().div_ceil(if unit < 4 { 4 / unit } else { wide });
    let by_rows = axis == 0 && unit >= 4;
    let tables = if by_rows { &[x][..] } else { &[] };
    for part in lower.parts(extent, tables)? {
        let x = if by_rows { x.only(&part) } else { x };
        let params = Params::new().u32(count).u32(layout.sizes.len() as u32).u32(stride / wide).u32(extent);
        let mut params = params.u32(part.start).u32(part.len() as u32).u32(0).u32(0);
        for words in loops(&layout, wide) {
            params = params.words8(words);
        }
        let binds = [x.into(), index.into(), out.into()];
        lower.each(kernel(unit, index.elem), &binds, params, count)?;
    }
    Ok(())
}

/// Sizes, strides of the source and strides of the index, in units of `wide` elements.
fn loops(layout: &Layout, wide: u32) -> [[u32; 8]; 3] {
    let inner = layout.sizes.len().saturating_sub(1);
    let size = |(axis, &size): (usize, &u32)| if axis == inner { size / wide } else { size };
    let step = |(axis, &stride): (usize, &u32)| if axis == inner && wide > 1 { 1 } else { stride / wide };
    let sizes: Vec<u32> = layout.sizes.iter().enumerate().map(size).collect();
    let strides: Vec<u32> = layout.of(0).iter().enumerate().map(step).collect();
    [padded(&sizes), padded(&strides), padded(layout.of(1))]
}

fn kernel(unit: u32, index: Elem) -> Kernel {
    let wgsl = if unit == 16 { "vec4<u32>" } else { "u32" };
    let kernel = Kernel::new(source!("take")).alias("Cell", wgsl).array("x", wgsl).reads("index", index);
    let kernel = kernel.role("out", RoleType::Array(wgsl), Access::Write).link(source!("lib/index"));
    if unit >= 4 {
        return kernel.link(source!("lib/cell_whole"));
    }
    kernel.set("BITS", unit * 8).link(source!("lib/parts")).link(source!("lib/cell_parts"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::Caps;
    use crate::graph::{Graph, Node, Tensor, ValueId};
    use crate::ops::{Bind, DType, Env, Lower, Lowered, find};
    use crate::options::Options;

    /// Rows of a table of 100 rows of 12 floats, picked by 5 numbers, on a device whose bindings cover 2048 bytes.
    fn lowered() -> Lowered {
        let tensor = |dtype, sizes: &[u32]| {
            Value::Tensor(Tensor {
                dtype,
                stored: dtype,
                swapped: false,
                max: Dims::new(sizes).unwrap(),
                constant: None,
            })
        };
        let table = tensor(DType::F32, &[100, 12]);
        let values = vec![table, tensor(DType::I32, &[5]), Value::Null, tensor(DType::F32, &[5, 12])];
        let node = Node { op: "aten.embedding.default".into(), args: [0, 1, 2, 2, 2, 3].map(ValueId).to_vec() };
        let graph = Graph { values, nodes: vec![node.clone()], ..Graph::default() };
        let shapes: Vec<Dims> =
            graph.values.iter().map(|v| if let Value::Tensor(t) = v { t.max } else { Dims::default() }).collect();
        let env = Env {
            graph: &graph,
            shapes: &shapes,
            symints: &[0; 4],
            slots: &[0; 4],
            storage: &[0, 1, 9, 2],
            host: &|_, _| Ok(0),
            caps: &Caps { max_binding: 2048, storage_alignment: 32, ..Caps::minimal() },
            options: &Options::default(),
        };
        Lower::run(&env, &node, find(&node.op).unwrap()).unwrap()
    }

    #[test]
    fn a_table_beyond_one_binding_is_bound_in_pieces() {
        let binds: Vec<Bind> = lowered().steps.iter().map(|step| step.binds[0]).collect();
        let piece = |first: u64, rows: u64| Bind::Range(ValueId(0), first * 48, rows * 48);
        assert_eq!(binds, [piece(0, 32), piece(32, 32), piece(64, 32), piece(96, 4)]);
    }
}
