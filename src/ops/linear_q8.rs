//! Products of which one factor at least is a byte: static and dynamic 8-bit activations, 8-bit and 4-bit weights with a scale
//! for each channel. One kernel, in which the terms of a sum come four at a time, with a linked meaning of four terms.

use super::{Bind, DType, FLOATS, Lower, Op, Operand, Params};
use crate::error::Result;
use crate::graph::Value;
use crate::shader::{Access, Elem, Kernel, RoleType, Source};
use crate::source;

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new("et_vk.linear_q8ta_q8csw.default", &[DType::I8], static_bytes),
    Op::new("et_vk.q8ta_linear.default", &[DType::I8], requantized).notes("activation none or relu"),
    Op::new("et_vk.q8ta_linear_gemv.default", &[DType::I8], requantized).notes("activation none or relu"),
    Op::new("et_vk.linear_dq8ca_q4gsw.default", FLOATS, dynamic_bytes).notes("groups of a multiple of 4"),
    Op::new("et_vk.linear_qcs4w.default", FLOATS, four_bit_channels),
    Op::new("aten._weight_int8pack_mm.default", FLOATS, byte_channels),
];

const WG: u32 = 64;
/// Terms beyond which a sum of products of bytes might not fit 32 bits.
pub(super) const MOST_TERMS: u32 = 1 << 16;

/// The integers of a result: `clamp(round(x / scale) + zero, -128, 127)`.
#[derive(Clone, Copy)]
pub(super) struct Requant {
    pub inverse: f32,
    pub zero: f32,
    pub relu: bool,
}

impl Lower<'_> {
    /// Arguments scale, zero point from `first` on, and an activation.
    pub(super) fn requant(&mut self, first: usize, activation: usize) -> Result<Requant> {
        let relu = match self.text(activation)? {
            "none" => false,
            "relu" => true,
            other => return Err(self.unsupported(format!("activation {other:?}"))),
        };
        let (scale, zero) = (self.double(first)?, self.int(first + 1)?);
        Ok(Requant { inverse: (1.0 / scale) as f32, zero: zero as f32, relu })
    }

    /// Argument `index`, floating-point, with at least `count` elements.
    pub(super) fn channels(&self, index: usize, count: u32) -> Result<Operand> {
        let tensor = self.tensor(index)?;
        if tensor.dims.numel() < count || !tensor.elem.is_float() {
            let (dtype, dims) = (tensor.dtype, tensor.dims);
            return Err(self.refuse(format!("argument {index} is {dtype} {dims}, expected {count} numbers")));
        }
        Ok(tensor)
    }

    /// Argument `index`, as [`Lower::channels`], or `None` for None.
    pub(super) fn optional_channels(&self, index: usize, count: u32) -> Result<Option<Operand>> {
        match self.value(index)? {
            Value::Null => Ok(None),
            _ => self.channels(index, count).map(Some),
        }
    }
}

/// `finish(m, n, sum)`: the number, and for bytes the integer, that a sum becomes; `value` is linked.
pub(super) fn finish(kernel: Kernel, bias: Option<Operand>, requant: Option<Requant>) -> Kernel {
    let mut text = String::from("value(m, n, sum)");
    if bias.is_some() {
        text += " + load_bias(n)";
    }
    let text = match requant {
        Some(Requant { relu, .. }) => {
            let bounded = if relu { format!("max({text}, 0.0)") } else { text };
            format!("i32(clamp(round(({bounded}) * p.inverse) + p.out_zero, -128.0, 127.0))")
        }
        None => text,
    };
    let result = if requant.is_some() { "i32" } else { "f32" };
    let kernel = kernel.function(format!("fn finish(m: u32, n: u32, sum: T) -> {result} {{ return {text}; }}"));
    bias.into_iter().fold(kernel, |kernel, bias| kernel.reads("bias", bias.elem))
}

/// One product.
struct Product {
    /// What four terms mean: `x_quad`, `w_quad`, `add`, `value`.
    terms: Source,
    x: (Bind, RoleType),
    weight: Operand,
    scales: Operand,
    /// Further tensors that the terms read.
    more: Vec<(&'static str, Operand)>,
    bias: Option<Operand>,
    requant: Option<Requant>,
    /// Scale and zero point of static activations.
    input: (f32, i32),
    group: u32,
    sizes: [u32; 3],
    out: Operand,
}

/// Invocations that share a block of results: few results of long sums keep a whole workgroup busy.
fn split(m: u32, n: u32, quads: u32) -> u32 {
    let blocks = u64::from(m.div_ceil(4)) * u64::from(n.div_ceil(4));
    if quads >= 16 && blocks < 8192 { WG } else { 1 }
}

impl Product {
    fn lower(self, lower: &mut Lower<'_>) -> Result<()> {
        let [m, n, k] = self.sizes;
        if self.out.dims.numel() == 0 {
            return Ok(());
        }
        let parts = lower.parts(n, &[self.weight])?;
        // Where rows of bytes do not begin with words, numbers are packed in a step of their own.
        let packs = self.requant.is_some() && (!n.is_multiple_of(4) || parts.len() > 1);
        let (out, out_elem) = if packs {
            (lower.scratch(u64::from(self.out.dims.numel().next_multiple_of(4)) * 4), Elem::I32)
        } else {
            (self.out.into(), self.out.elem)
        };
        let quads = k.div_ceil(4);
        let rows = m.min(4);
        let width = self.weight.dims.last();
        for part in parts {
            let columns = part.len() as u32;
            let (tiles_m, tiles_n) = (m.div_ceil(rows), columns.div_ceil(4));
            let split = split(m, columns, quads);
            let kernel = self.kernel(out_elem).set("ROWS", rows).set("SPLIT", split);
            let params = Params::new().u32(m).u32(columns).u32(k).u32(quads).u32(width).u32(n).u32(tiles_n);
            let params = params.u32(part.start).f32(self.input.0).i32(self.input.1);
            let (inverse, zero) = self.requant.map_or((1.0, 0.0), |r| (r.inverse, r.zero));
            let params = params.f32(inverse).f32(zero).u32(self.group).u32(self.scales.dims.last());
            let mut binds = vec![self.x.0, self.weight.only(&part).into(), self.scales.into()];
            binds.extend(self.more.iter().map(|(_, operand)| Bind::from(*operand)));
            binds.extend(self.bias.map(Bind::from));
            binds.push(out);
            let blocks = u64::from(tiles_m) * u64::from(tiles_n);
            lower.step(kernel, &binds, params, blocks.div_ceil(u64::from(WG / split)))?;
        }
        if packs { pack_bytes(lower, out, self.out) } else { Ok(()) }
    }

    fn kernel(&self, out: Elem) -> Kernel {
        let [_, _, k] = self.sizes;
        let store = match out.size() {
            1 => "store4_out((m * p.width + p.first + n) / 4u, v)".to_string(),
            _ => "for (var e = 0u; e < 4u && n + e < p.n; e++) { store_out(m * p.width + p.first + n + e, v[e]); }"
                .into(),
        };
        let wgsl = out.compute_type();
        let mut kernel = Kernel::new(source!("gemm_quads"))
            .set("WG", WG)
            .flag("ALIGNED", k.is_multiple_of(4) && self.weight.dims.last().is_multiple_of(4))
            .alias("R", wgsl)
            .link(self.terms)
            .function(format!("fn store(m: u32, n: u32, v: vec4<R>) {{ {store}; }}"))
            .role("x", self.x.1, Access::Read)
            .array("weight", "u32")
            .reads("scales", self.scales.elem);
        if let RoleType::Tensor(_) = self.x.1 {
            kernel = kernel.link(source!("lib/gemm_x"));
        }
        for (name, operand) in &self.more {
            kernel = kernel.reads(name, operand.elem);
        }
        finish(kernel, self.bias, self.requant).writes("out", out)
    }
}

/// `out = bytes of the words of x`
pub(super) fn pack_bytes(lower: &mut Lower<'_>, x: Bind, out: Operand) -> Result<()> {
    let quads = out.dims.numel().div_ceil(4);
    let kernel = Kernel::new(source!("pack_bytes")).set("WG", WG).reads("x", Elem::I32).writes("out", out.elem);
    lower.step(kernel, &[x, out.into()], Params::new().u32(quads), u64::from(quads.div_ceil(WG)))
}

/// The last dimension of `x`, and its number of rows.
fn rows(lower: &Lower<'_>, x: Operand) -> Result<(u32, u32)> {
    let Some((&k, rows)) = x.dims.split_last() else { return Err(lower.refuse("its input has rank 0")) };
    Ok((rows.iter().product(), k))
}

/// The shape of the result: that of `x` with `n` columns, or, where a view was left out, the program's own.
fn result(lower: &mut Lower<'_>, x: Operand, m: u32) -> Result<Operand> {
    let declared = lower.declared_output(0)?;
    let n = declared.last();
    let rank = x.dims.len();
    if declared.len() == rank {
        return lower.output(0, x.dims.with(rank - 1, n)?);
    }
    if u64::from(m) * u64::from(n) != u64::from(declared.numel()) {
        return Err(lower.refuse(format!("the input is {}, the result {declared}", x.dims)));
    }
    lower.output(0, declared)
}

/// Argument `index`, whose `[n, bytes]` rows hold `k` terms of `bits` each, or more.
fn weight(lower: &Lower<'_>, index: usize, (n, k): (u32, u32), bits: u32) -> Result<Operand> {
    let weight = lower.tensor(index)?;
    let fits =
        matches!(&*weight.dims, &[rows, width] if rows >= n && u64::from(width) * 8 >= u64::from(k) * u64::from(bits));
    // Nibbles are bits in either type, bytes are signed.
    let held = weight.elem == Elem::I8 || (weight.elem == Elem::U8 && bits < 8);
    if !fits || !held {
        let (dtype, dims) = (weight.dtype, weight.dims);
        return Err(
            lower.refuse(format!("the weight is {dtype} {dims}, expected {n} rows of {k} terms of {bits} bits"))
        );
    }
    Ok(weight)
}

/// `(x, scale, zero, weight, sums, scales, bias?) -> out`
fn static_bytes(lower: &mut Lower<'_>) -> Result<()> {
    let bias = (lower.node.args.len() > 7).then_some(6);
    bytes(lower, bias, None)?;
    lower.expect_floating_output()
}

/// `(x, scale, zero, weight, sums, scales, scale of out, zero of out, bias?, activation) -> out`
fn requantized(lower: &mut Lower<'_>) -> Result<()> {
    let requant = lower.requant(6, 9)?;
    bytes(lower, Some(8), Some(requant))
}

fn bytes(lower: &mut Lower<'_>, bias: Option<usize>, requant: Option<Requant>) -> Result<()> {
    let x = lower.tensor(0)?;
    let (m, k) = rows(lower, x)?;
    let out = result(lower, x, m)?;
    if requant.is_some() && out.elem != Elem::I8 {
        return Err(lower.unsupported(format!("the result is {}, expected int8", out.dtype)));
    }
    if k > MOST_TERMS {
        return Err(lower.unsupported(format!("sums of {k} products of bytes, at most {MOST_TERMS} fit 32 bits")));
    }
    let n = out.dims.last();
    let product = Product {
        terms: source!("lib/quads_bytes"),
        x: (x.into(), RoleType::Array("u32")),
        weight: weight(lower, 3, (n, k), 8)?,
        scales: lower.channels(5, n)?,
        more: Vec::new(),
        bias: bias.map(|index| lower.optional_channels(index, n)).transpose()?.flatten(),
        requant,
        input: (lower.double(1)? as f32, lower.int(2)? as i32),
        group: 1,
        sizes: [m, n, k],
        out,
    };
    product.lower(lower)
}

/// `(x, scales of rows, zeros of rows, weight, sums, scales, group, bias?) -> out`
fn dynamic_bytes(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let (m, k) = rows(lower, x)?;
    let out = result(lower, x, m)?;
    lower.expect_floating_output()?;
    let n = out.dims.last();
    let (row_scales, row_zeros) = (lower.channels(1, m)?, lower.tensor(2)?);
    let (scales, group) = (lower.tensor(5)?, u32::try_from(lower.int(6)?).unwrap_or(0));
    if row_zeros.dims.numel() < m || row_zeros.elem.is_float() {
        return Err(lower.refuse(format!("{} {} zero points for {m} rows", row_zeros.dtype, row_zeros.dims)));
    }
    if group == 0 || !group.is_multiple_of(4) {
        return Err(lower.unsupported(format!("groups of {group}, expected a multiple of 4")));
    }
    let covers =
        matches!(&*scales.dims, &[groups, width] if u64::from(groups) * u64::from(group) >= u64::from(k) && width >= n);
    let weight = weight(lower, 3, (n, k), 4)?;
    if !covers || !scales.elem.is_float() || !weight.dims.last().is_multiple_of(4) {
        return Err(lower.refuse(format!("scales {scales}, weights {weight} for {n} sums of {k} in groups of {group}")));
    }
    let quads = k.div_ceil(4);
    let words = m.saturating_mul(quads);
    let bytes = lower.scratch(u64::from(words.max(1)) * 4);
    let kernel = Kernel::new(source!("quantize_rows"))
        .set("WG", WG)
        .flag("ALIGNED", k.is_multiple_of(4))
        .link(source!("lib/gemm_x"))
        .reads("x", x.elem)
        .reads("row_scales", row_scales.elem)
        .reads("row_zeros", row_zeros.elem)
        .role("out", RoleType::Array("u32"), Access::Write);
    let binds = [x.into(), row_scales.into(), row_zeros.into(), bytes];
    let params = Params::new().u32(words).u32(quads).u32(k);
    lower.step(kernel, &binds, params, u64::from(words.div_ceil(WG)))?;
    let product = Product {
        terms: source!("lib/quads_dynamic"),
        x: (bytes, RoleType::Array("u32")),
        weight,
        scales,
        more: vec![("row_scales", row_scales), ("row_zeros", row_zeros)],
        bias: lower.optional_channels(7, n)?,
        requant: None,
        input: (1.0, 0),
        group,
        sizes: [m, n, k],
        out,
    };
    product.lower(lower)
}

/// `(x, weight, scales) -> out`, two terms to a byte, the first in its upper half
fn four_bit_channels(lower: &mut Lower<'_>) -> Result<()> {
    channels(lower, source!("lib/quads_nibbles"), 4)
}

/// `(x, weight, scales) -> out`
fn byte_channels(lower: &mut Lower<'_>) -> Result<()> {
    channels(lower, source!("lib/quads_weights"), 8)
}

fn channels(lower: &mut Lower<'_>, terms: Source, bits: u32) -> Result<()> {
    let x = lower.tensor(0)?;
    let (m, k) = rows(lower, x)?;
    let out = result(lower, x, m)?;
    lower.expect_floating_output()?;
    let n = out.dims.last();
    let product = Product {
        terms,
        x: (x.into(), RoleType::Tensor(x.elem)),
        weight: weight(lower, 1, (n, k), bits)?,
        scales: lower.channels(2, n)?,
        more: Vec::new(),
        bias: None,
        requant: None,
        input: (1.0, 0),
        group: 1,
        sizes: [m, n, k],
        out,
    };
    product.lower(lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_results_of_long_sums_are_split() {
        assert_eq!(split(1, 2048, 512), WG);
        assert_eq!(split(512, 2048, 512), 1);
        assert_eq!(split(1, 2048, 8), 1);
    }
}
