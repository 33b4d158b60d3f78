//! Attention of many rows by cooperative matrices: one step turns queries, and the keys and values that the call sees, into
//! halves in the order in which matrices are loaded; the next one multiplies.

use super::{Attention, Sight};
use crate::error::Result;
use crate::gpu::{Caps, CoopShape, coop_types};
use crate::ops::{Lower, Params};
use crate::shader::{Access, Kernel, RoleType};
use crate::source;

/// Rows and columns of a matrix.
const FRAGMENT: u32 = 16;

/// Keys that are multiplied at a time.
const BLOCK: u32 = 32;

/// Subgroups of a workgroup.
const SUBGROUPS: u32 = 4;

/// Rows below which the other kernels win.
const FEW: u32 = 64;

const SHAPE: CoopShape = CoopShape { m: FRAGMENT, n: FRAGMENT, k: FRAGMENT, f16_accumulate: false };

/// Subgroup size, and rows of a subgroup, if the device has the matrices and the head size suits them.
fn lanes_and_rows(d: u32, caps: &Caps) -> Option<(u32, u32)> {
    let (low, high) = caps.subgroup?;
    let rows = if d <= 64 { 32 } else { 16 };
    let suits = d.is_multiple_of(BLOCK) && d <= 128 && d / 4 <= low && (low == rows || low == 2 * rows);
    let fits = low * SUBGROUPS <= caps.max_invocations && caps.shared_bytes >= 32 << 10;
    (low == high && suits && fits && caps.coop.contains(&SHAPE)).then_some((low, rows))
}

/// True when attention is computed here.
pub(super) fn applies(lower: &Lower<'_>, a: &Attention) -> bool {
    let options = lower.env.options;
    let free = options.force_attention.is_none() && options.sdpa_query_tile == 0 && !options.force_f32_gemm;
    let many = a.seq * (a.heads_q / a.heads_kv) > FEW;
    let plain = a.batch == 1 && a.sight == Sight::Causal;
    free && many && plain && lanes_and_rows(a.d, lower.caps()).is_some()
}

pub(super) fn lower(lower: &mut Lower<'_>, a: &Attention) -> Result<()> {
    let found = lanes_and_rows(a.d, lower.caps()).zip(coop_types(SHAPE));
    let Some(((lanes, tile), [mat_a, mat_b, sum])) = found else {
        return Err(lower.unsupported(format!("cooperative matrices for heads of {}", a.d)));
    };
    let rows = (a.seq * (a.heads_q / a.heads_kv)).next_multiple_of(tile * SUBGROUPS);
    let keys = a.capacity.next_multiple_of(BLOCK);
    let halves = |count: u32| u64::from(count) * u64::from(a.heads_kv) * u64::from(a.d) * 2;
    let [q_half, k_half, v_half] = [rows, keys, keys].map(|count| lower.scratch(halves(count)));
    let q_unit = lower.scratch(u64::from(rows) * u64::from(a.heads_kv) * 4);
    let kv_unit = lower.scratch(u64::from(keys) * u64::from(a.heads_kv) * 8);
    let params = |scale: f32| {
        let params = Params::new().u32(a.seq).u32(a.heads_q).u32(a.heads_kv).u32(a.capacity);
        params.dynamic(a.pos).f32(scale).u32(rows).u32(keys)
    };
    let base = |body| Kernel::new(body).set("D", a.d).set("FRAG", FRAGMENT).set("BLOCK", BLOCK);
    let wg = lanes * 4;
    let kernel = base(source!("attention_halves"))
        .set("WG", wg)
        .reads("q", a.q.elem)
        .reads("k_cache", a.k_cache.elem)
        .reads("v_cache", a.v_cache.elem)
        .role("q_half", RoleType::Array("vec4<f16>"), Access::Write)
        .role("k_half", RoleType::Array("vec4<f16>"), Access::Write)
        .role("v_half", RoleType::Array("vec4<f16>"), Access::Write)
        .role("q_unit", RoleType::Array("f32"), Access::Write)
        .role("kv_unit", RoleType::Array("vec2<f32>"), Access::Write);
    let lines = u64::from(a.heads_kv) * (u64::from(rows) + 2 * u64::from(keys));
    let binds = [a.q.into(), a.k_cache.into(), a.v_cache.into(), q_half, k_half, v_half, q_unit, kv_unit];
    // Scores in powers of two.
    let scale = a.scale * std::f32::consts::LOG2_E;
    lower.step(kernel, &binds, params(scale), lines.div_ceil(16).min(4096))?;
    let kernel = base(source!("attention_coop"))
        .set("LANES", lanes)
        .set("ROWS", tile)
        .set("SUBGROUPS", SUBGROUPS)
        .alias("MatA", mat_a)
        .alias("MatB", mat_b)
        .alias("Acc", sum)
        .array("q_half", "vec4<f16>")
        .array("k_half", "vec4<f16>")
        .array("v_half", "vec4<f16>")
        .array("q_unit", "f32")
        .array("kv_unit", "vec2<f32>")
        .writes("out", a.out.elem);
    let groups = u64::from(rows / (tile * SUBGROUPS)) * u64::from(a.heads_kv);
    lower.step(kernel, &[q_half, k_half, v_half, q_unit, kv_unit, a.out.into()], params(scale), groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Constant, DType, Dims, Graph, Node, Tensor, Value, ValueId};
    use crate::options::Options;
    use crate::plan::Plan;
    use crate::shader::assemble;

    #[test]
    fn every_head_size_is_sound_wgsl() {
        let caps = Caps {
            f16: true,
            subgroup: Some((32, 32)),
            coop: vec![SHAPE],
            shared_bytes: 48 << 10,
            max_invocations: 1024,
            ..Caps::minimal()
        };
        for (d, many) in [(32, true), (64, true), (96, true), (128, true), (80, false), (256, false)] {
            let tensor = |dims: &[u32], constant| {
                let max = Dims::new(dims).unwrap();
                let dtype = DType::F32;
                Value::Tensor(Tensor { dtype, stored: dtype, swapped: false, max, constant })
            };
            let values = vec![
                tensor(&[1, 40, 4, d], None),
                tensor(&[1, 40, 2, d], None),
                tensor(&[1, 40, 2, d], None),
                tensor(&[1, 100, 2, d], Some(0)),
                tensor(&[1, 100, 2, d], Some(1)),
                Value::Int(0),
                Value::Null,
                tensor(&[1, 40, 4, d], None),
            ];
            let args = [0, 1, 2, 3, 4, 5, 5, 6, 6, 6, 6, 7].map(ValueId).to_vec();
            let nodes = vec![Node { op: "sdpa_with_kv_cache.default".into(), args }];
            let inputs = [0, 1, 2].map(ValueId).to_vec();
            let constants = vec![Constant::Empty, Constant::Empty];
            let graph = Graph { values, nodes, inputs, outputs: vec![ValueId(7)], constants };
            let plan = Plan::new(graph, &caps, &Options::default()).unwrap();
            let steps = &plan.probes[0].lowered[0].steps;
            let names: Vec<&str> = steps.iter().map(|step| step.kernel.body.name()).collect();
            assert_eq!(names.contains(&"attention_coop"), many, "{d}");
            for step in steps {
                let text = assemble(&step.kernel);
                let module = naga::front::wgsl::parse_str(&text);
                let module = module.unwrap_or_else(|e| panic!("{}", e.emit_to_string(&text)));
                let all = naga::valid::Capabilities::all();
                let mut validator = naga::valid::Validator::new(naga::valid::ValidationFlags::all(), all);
                if let Err(e) = validator.validate(&module) {
                    panic!("{}", e.emit_to_string(&text));
                }
            }
        }
    }
}
