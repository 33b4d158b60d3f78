//! The engine behind every elementwise operator: one kernel, whose formula and addressing are one-line functions.

use super::layout::{Layout, broadcast_strides, padded};
use super::{Lower, Operand, Params};
use crate::error::Result;
use crate::graph::{DType, Dims};
use crate::shader::{Elem, Kernel};
use crate::source;

/// What a formula's variable stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Input {
    /// A tensor that broadcasts to the result.
    Tensor(Operand),
    /// A number, in `p.t`.
    Number(f64),
    /// The position in the result.
    Index,
}

impl Input {
    /// The tensor, if it is one.
    pub(super) fn tensor(&self) -> Option<Operand> {
        match self {
            Input::Tensor(x) => Some(*x),
            _ => None,
        }
    }
}

impl Lower<'_> {
    /// Argument `index` as a formula's variable: a tensor or a number.
    pub(super) fn input(&self, index: usize) -> Result<Input> {
        self.tensor(index).map(Input::Tensor).or_else(|_| self.double(index).map(Input::Number))
    }

    /// Refuses a result that is not floating-point.
    pub(super) fn expect_floating_output(&self) -> Result<()> {
        self.expect_outputs(DType::is_float, "a floating-point type")
    }

    /// Refuses a floating-point result.
    pub(super) fn expect_integer_output(&self) -> Result<()> {
        self.expect_outputs(|dtype| !dtype.is_float(), "an integer type")
    }

    /// Refuses a result that is no bool.
    pub(super) fn expect_bool_output(&self) -> Result<()> {
        self.expect_outputs(|dtype| dtype == DType::Bool, "bool")
    }

    /// Refuses a result that cannot hold what arithmetic gives: numbers in a bool, fractions in an integer.
    pub(super) fn expect_room_for(&self, inputs: &[Input]) -> Result<()> {
        let fractions = |input: &Input| match input {
            Input::Tensor(x) => x.elem.is_float(),
            Input::Number(x) => x.fract() != 0.0,
            Input::Index => false,
        };
        let bits = |input: &Input| input.tensor().is_some_and(|x| x.elem == Elem::Bool);
        if inputs.iter().any(fractions) {
            self.expect_floating_output()
        } else if inputs.iter().all(bits) {
            Ok(())
        } else {
            self.expect_outputs(|dtype| dtype != DType::Bool, "a type of numbers")
        }
    }

    fn expect_outputs(&self, fits: fn(DType) -> bool, expected: &str) -> Result<()> {
        let tensors = self.answer.shapes.iter().filter_map(|(id, _)| self.env.graph.tensor(*id));
        match tensors.map(|t| t.dtype).find(|&dtype| !fits(dtype)) {
            Some(dtype) => Err(self.unsupported(format!("the result is {dtype}, expected {expected}"))),
            None => Ok(()),
        }
    }
}

/// `out = formula(inputs)` with scalar arguments `p.s`, `p.t`.
pub(super) struct Map<'a> {
    /// WGSL expression in the inputs' names.
    pub formula: &'a str,
    /// Variables by name, at most three.
    pub inputs: &'a [(&'static str, Input)],
    /// Type in which the formula computes: `f32` or `i32`.
    pub compute: &'static str,
    /// `p.s` and `p.t`; a [`Input::Number`] takes the place of the second.
    pub scalars: [f64; 2],
}

/// Adds the step that computes `out`; nothing when it is empty.
pub(super) fn map(lower: &mut Lower<'_>, out: Operand, map: &Map<'_>) -> Result<()> {
    let mut kernel = kernel(map.formula, map.compute, out.elem);
    let tensors: Vec<Operand> = map.inputs.iter().filter_map(|(_, input)| input.tensor()).collect();
    let strides: Vec<Vec<u32>> = tensors.iter().map(|x| broadcast_strides(x.dims, out.dims)).collect();
    let layout = Layout::new(&out.dims, &strides);
    let (mut binds, mut scalars, mut numbers) = (Vec::new(), map.scalars, 0);
    for &(name, input) in map.inputs {
        let body = match input {
            Input::Tensor(x) => {
                let text = fetch(name, x, out.dims, &layout, binds.len());
                binds.push(x.into());
                kernel = kernel.reads(name, x.elem);
                text
            }
            Input::Number(number) => {
                let (slot, name) = if numbers == 0 { (1, "C(p.t)") } else { (0, "C(p.s)") };
                numbers += 1;
                if let Some(scalar) = scalars.get_mut(slot) {
                    *scalar = number;
                }
                name.into()
            }
            Input::Index => "vec4<u32>(4u * q) + vec4<u32>(0u, 1u, 2u, 3u)".into(),
        };
        kernel = kernel.function(format!("fn get_{name}(q: u32) -> vec4<C> {{ return vec4<C>({body}); }}"));
    }
    let names: Vec<&str> = map.inputs.iter().map(|(name, _)| *name).collect();
    let kernel = apply(kernel, map.formula, &names, out.elem).writes("out", out.elem);
    binds.push(out.into());
    let n4 = out.dims.numel().div_ceil(4);
    let rank = layout.sizes.len() as u32;
    let mut params = Params::new().u32(n4).u32(rank);
    for scalar in scalars {
        let fits = f64::from(i32::MIN)..=f64::from(i32::MAX);
        if map.compute == "i32" && !fits.contains(&scalar) {
            return Err(lower.refuse(format!("{scalar} does not fit the 32 bits that integers have on the device")));
        }
        params = if map.compute == "f32" { params.f32(scalar as f32) } else { params.i32(scalar as i32) };
    }
    params = params.words8(padded(&layout.sizes));
    for operand in 0..3 {
        params = params.words8(padded(layout.of(operand)));
    }
    lower.each(kernel, &binds, params, n4)
}

fn kernel(formula: &str, compute: &'static str, out: Elem) -> Kernel {
    let kernel = Kernel::new(source!("elementwise")).alias("C", compute).alias("R", out.compute_type());
    let kernel = kernel.link(source!("lib/index"));
    let calls = formula.contains('(');
    match compute {
        "f32" if calls => kernel.link(source!("lib/float")).link(source!("lib/nan")),
        "i32" if calls => kernel.link(source!("lib/integer")),
        _ => kernel,
    }
}

/// The formula as a function of one element, and its application to four.
fn apply(kernel: Kernel, formula: &str, names: &[&str], out: Elem) -> Kernel {
    let typed: Vec<String> = names.iter().map(|name| format!("{name}: C")).collect();
    let result = if out == Elem::Bool { format!("R(bool({formula}))") } else { format!("R({formula})") };
    let lets: String = names.iter().map(|name| format!("let {name} = get_{name}(q); ")).collect();
    let call = |lane| {
        let lanes: Vec<String> = names.iter().map(|name| format!("{name}.{lane}")).collect();
        format!("f({})", lanes.join(", "))
    };
    let calls = ["x", "y", "z", "w"].map(call).join(", ");
    kernel
        .function(format!("fn f({}) -> R {{ return {result}; }}", typed.join(", ")))
        .function(format!("fn apply(q: u32) -> vec4<R> {{ {lets}return vec4<R>({calls}); }}"))
}

/// The expression that reads elements 4q to 4q+3 of the result from one operand.
fn fetch(name: &str, x: Operand, out: Dims, layout: &Layout, operand: usize) -> String {
    let strides = layout.of(operand);
    let even = |steps: &[u32]| steps.iter().all(|step| step.is_multiple_of(4));
    let quads = layout.sizes.last().is_some_and(|size| size.is_multiple_of(4));
    match strides.split_last() {
        _ if x.dims.numel() == out.numel() => format!("load4_{name}(q)"),
        _ if x.dims.numel() == 1 => format!("C(load_{name}(0u))"),
        Some((1, outer)) if quads && even(outer) => format!("load4_{name}(at(4u * q, {operand}u) >> 2u)"),
        Some((0, _)) if quads => format!("C(load_{name}(at(4u * q, {operand}u)))"),
        _ => {
            let one = |lane| format!("C(load_{name}(at(4u * q + {lane}u, {operand}u)))");
            [0, 1, 2, 3].map(one).join(", ")
        }
    }
}

/// The type in which a result of type `out` is computed from `inputs`: the result's own, or for a bool result what the
/// inputs promote to.
pub(super) fn compute_type(inputs: &[Input], out: Elem) -> &'static str {
    let exact = |x: f64| x.fract() == 0.0 && i32::try_from(x as i64).is_ok();
    let floating = |input: &Input| match input {
        Input::Tensor(x) => x.elem.is_float(),
        Input::Number(x) => !exact(*x),
        Input::Index => false,
    };
    match out {
        Elem::Bool if inputs.iter().any(floating) => "f32",
        Elem::Bool => "i32",
        _ => out.compute_type(),
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use crate::shader::assemble;

    /// Fails unless the formula is valid WGSL with operands and result of these types.
    pub fn assert_sound(formula: &str, names: &[&'static str], elem: Elem, compute: &'static str, out: Elem) {
        let mut kernel = kernel(formula, compute, out).set("WG", 64);
        for name in names {
            let get = format!("fn get_{name}(q: u32) -> vec4<C> {{ return vec4<C>(load4_{name}(q)); }}");
            kernel = kernel.reads(name, elem).function(get);
        }
        let text = assemble(&apply(kernel, formula, names, out).writes("out", out));
        let module = naga::front::wgsl::parse_str(&text).unwrap_or_else(|e| panic!("{}", e.emit_to_string(&text)));
        let capabilities = naga::valid::Capabilities::SHADER_FLOAT16;
        let mut validator = naga::valid::Validator::new(naga::valid::ValidationFlags::all(), capabilities);
        validator.validate(&module).unwrap_or_else(|e| panic!("{formula} in {compute}: {e:?}"));
    }
}
