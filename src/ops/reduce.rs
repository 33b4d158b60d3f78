//! Reductions over any dimensions: what is kept, what goes, and how two partial results become one.

use super::elementwise::{Map, map};
use super::layout::{Layout, padded};
use super::rows::Team;
use super::{ALL, Lower, NUMBERS, Op, Operand, Params};
use crate::error::Result;
use crate::graph::{Dims, Value};
use crate::shader::{Elem, Kernel, Source};
use crate::source;

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new("aten.sum.dim_IntList", ALL, |lower| over_list(lower, Fold::Sum)),
    Op::new("aten.mean.dim", NUMBERS, |lower| over_list(lower, Fold::Mean)),
    Op::new("aten.amax.default", ALL, |lower| over_list(lower, Fold::Best(">"))),
    Op::new("aten.amin.default", ALL, |lower| over_list(lower, Fold::Best("<"))),
    Op::new("aten.argmax.default", ALL, |lower| over_one(lower, Fold::Place(">"))),
    Op::new("aten.argmin.default", ALL, |lower| over_one(lower, Fold::Place("<"))),
];

/// What becomes of the elements; the text compares a better one with a worse one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fold {
    Sum,
    Mean,
    Best(&'static str),
    Place(&'static str),
}

/// Few results of many elements get a workgroup each; results smaller than a word are made four at a time.
fn choose(results: u32, length: u32, side_by_side: bool, out: Elem) -> Team {
    match () {
        () if out.size() == 1 || length < 64 => Team::One,
        () if !side_by_side && results >= 256 => Team::columns(results),
        () => Team::Workgroup,
    }
}

/// The dimensions of a list; none or an empty one means all.
fn over_list(lower: &mut Lower<'_>, fold: Fold) -> Result<()> {
    let rank = lower.tensor(0)?.dims.len();
    let dims = lower.ints(1)?;
    let axes = dims.iter().map(|&dim| lower.to_axis(dim, rank)).collect::<Result<Vec<_>>>()?;
    reduce(lower, fold, &axes)
}

/// One dimension; none means all, flattened.
fn over_one(lower: &mut Lower<'_>, fold: Fold) -> Result<()> {
    let rank = lower.tensor(0)?.dims.len();
    let axes = match lower.value(1)? {
        Value::Null => Vec::new(),
        _ => vec![lower.axis(1, rank)?],
    };
    reduce(lower, fold, &axes)
}

fn reduce(lower: &mut Lower<'_>, fold: Fold, axes: &[usize]) -> Result<()> {
    let x = lower.tensor(0)?;
    let keep = lower.boolean(2)?;
    let goes = |axis: usize| axes.is_empty() || axes.contains(&axis);
    let sizes = x.dims.iter().enumerate().filter(|(axis, _)| keep || !goes(*axis));
    let sizes: Vec<u32> = sizes.map(|(axis, &size)| if goes(axis) { 1 } else { size }).collect();
    let out = lower.output(0, Dims::new(&sizes)?)?;
    let length = x.dims.iter().enumerate().filter(|(axis, _)| goes(*axis)).map(|(_, &size)| size).product();
    check(lower, fold, (x, out))?;
    if length > 0 {
        return fold_step(lower, (x, out), fold, (length, &goes));
    }
    let value = match fold {
        Fold::Sum => 0.0,
        Fold::Mean => f64::NAN,
        _ if out.dims.numel() > 0 => return Err(lower.refuse(format!("{} has no element to choose", x.dims))),
        _ => 0.0,
    };
    let compute = out.elem.compute_type();
    map(lower, out, &Map { formula: "p.s", inputs: &[], compute, scalars: [value, 0.0] })
}

fn check(lower: &Lower<'_>, fold: Fold, (x, out): (Operand, Operand)) -> Result<()> {
    match fold {
        Fold::Sum if x.elem.is_float() => lower.expect_floating_output(),
        Fold::Best(_) if out.elem != x.elem => {
            Err(lower.unsupported(format!("the result is {}, expected {}", out.dtype, x.dtype)))
        }
        Fold::Mean => lower.expect_floating_output(),
        Fold::Place(_) if out.elem != Elem::I32 => {
            Err(lower.unsupported(format!("the result is {}, expected int32 or int64", out.dtype)))
        }
        _ => Ok(()),
    }
}

/// Loops over what stays, then over what goes: result o and element k of it are flat index `o · length + k`.
fn fold_step(
    lower: &mut Lower<'_>,
    (x, out): (Operand, Operand),
    fold: Fold,
    (length, goes): (u32, &dyn Fn(usize) -> bool),
) -> Result<()> {
    let order = (0..x.dims.len()).filter(|&axis| !goes(axis)).chain((0..x.dims.len()).filter(|&axis| goes(axis)));
    let order: Vec<usize> = order.collect();
    let strides = x.dims.strides();
    let pick = |from: &[u32], keep: &dyn Fn(usize) -> bool| -> Vec<u32> {
        order.iter().filter(|&&axis| keep(axis)).filter_map(|&axis| from.get(axis).copied()).collect()
    };
    let every = |_: usize| true;
    let layout = Layout::new(&pick(&x.dims, &every), &[pick(&strides, &every)]);
    let gone = Layout::new(&pick(&x.dims, goes), &[pick(&strides, goes)]);
    let step = gone.of(0).last().copied().unwrap_or(1);
    let results = out.dims.numel();
    let even = gone.sizes.len() <= 1;
    let team = choose(results, length, step == 1, out.elem);
    let gather = match team {
        Team::One => source!("lib/gather_alone"),
        Team::Workgroup => source!("lib/gather_workgroup"),
        Team::Columns(_) => source!("lib/gather_columns"),
    };
    let fours = team == Team::Workgroup && even && step == 1 && length.is_multiple_of(4);
    let (turns, each) =
        if fours { (length / 4, source!("lib/fold_fours")) } else { (length, source!("lib/fold_each")) };
    let threads = lower.threads(team, turns, if even { 1 } else { 1 + layout.sizes.len() as u32 })?;
    let slots = if out.elem.size() == 1 { results.div_ceil(4) } else { results };
    let kernel = kernel(fold, x.elem, out.elem, even).set("WG", threads.workgroup).set("TEAM", threads.team);
    let kernel = kernel.link(threads.piece).link(each).link(gather);
    let params = Params::new().u32(slots).u32(length).u32(step).u32(layout.sizes.len() as u32);
    let params = params.words8(padded(&layout.sizes)).words8(padded(layout.of(0)));
    lower.step(kernel, &[x.into(), out.into()], params, u64::from(slots.div_ceil(threads.workgroup / threads.team)))
}

fn kernel(fold: Fold, x: Elem, out: Elem, even: bool) -> Kernel {
    let compute = match fold {
        Fold::Sum | Fold::Mean if out.is_float() => "f32",
        _ => x.compute_type(),
    };
    let element = if even { "base + k * p.step" } else { "at(o * p.length + k, 0u)" };
    let finish = match (fold, out) {
        (Fold::Mean, _) => "R(a / f32(p.length))",
        (Fold::Place(_), _) => "R(a.k)",
        (_, Elem::Bool) => "R(bool(a))",
        _ => "R(a)",
    };
    let emit = if out.size() == 1 {
        let results = [0, 1, 2, 3].map(|n| format!("result(4u * slot + {n}u, lane)")).join(", ");
        format!("let v = vec4<R>({results}); if (stored) {{ store4_out(slot, v); }}")
    } else {
        "let v = result(slot, lane); if (stored) { store_out(slot, v); }".into()
    };
    let kernel = Kernel::new(source!("reduce")).alias("T", compute).alias("R", out.compute_type());
    let kernel = kernel.reads("x", x).writes("out", out).link(source!("lib/index")).link(piece(fold));
    let kernel = comparison(kernel, fold, compute);
    kernel
        .function(format!("fn element(base: u32, o: u32, k: u32) -> u32 {{ return {element}; }}"))
        .function(format!("fn finish(a: Acc) -> R {{ return {finish}; }}"))
        .function(format!("fn emit(slot: u32, lane: u32, stored: bool) {{ {emit} }}"))
}

fn piece(fold: Fold) -> Source {
    match fold {
        Fold::Sum | Fold::Mean => source!("lib/fold_sum"),
        Fold::Best(_) => source!("lib/fold_best"),
        Fold::Place(_) => source!("lib/fold_place"),
    }
}

/// NaN beats every number.
fn comparison(kernel: Kernel, fold: Fold, compute: &str) -> Kernel {
    let (Fold::Best(better) | Fold::Place(better)) = fold else { return kernel };
    let nan = if compute == "f32" { " || (is_nan(a) && !is_nan(b))" } else { "" };
    let kernel = if nan.is_empty() { kernel } else { kernel.link(source!("lib/nan")) };
    kernel.function(format!("fn beats(a: T, b: T) -> bool {{ return a {better} b{nan}; }}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_long_results_get_a_workgroup() {
        assert_eq!(choose(1, 4096, true, Elem::F32), Team::Workgroup);
        assert_eq!(choose(100_000, 4096, true, Elem::F32), Team::Workgroup);
        assert_eq!(choose(100_000, 4096, false, Elem::F32), Team::Columns(32));
        assert_eq!(choose(300, 4096, false, Elem::F32), Team::Columns(8));
        assert_eq!(choose(4, 4096, false, Elem::F32), Team::Workgroup);
        assert_eq!(choose(1, 4096, true, Elem::I8), Team::One);
        assert_eq!(choose(1, 8, true, Elem::F32), Team::One);
    }
}
