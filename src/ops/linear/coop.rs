//! Products by cooperative matrices: the activations become halves with one power-of-two scale per row, then tiles of
//! 16 x 16 x 16 products sum in f32. A row's scale keeps halves finite for every finite row.

use super::choose::{COOP_TILES, coop_lanes};
use super::{Product, Weights};
use crate::error::Result;
use crate::ops::{Bind, Lower, Params};
use crate::shader::{Access, Kernel, RoleType};
use crate::source;

/// Columns of the activations that a workgroup stages at a time.
const DEPTH: u32 = 64;

/// The largest half that a scaled row holds; sums of such products stay far inside f32.
const TOP: f32 = 16384.0;

pub(super) fn lower(lower: &mut Lower<'_>, product: &Product, rows: u32, columns: u32) -> Result<()> {
    let Weights::Q4 { packed, scales, group } = &product.weights else {
        return Err(lower.unsupported("cooperative matrices take 4-bit weights"));
    };
    let tile = COOP_TILES.into_iter().find(|&(m, n, _)| (m, n) == (rows, columns));
    let (Some((.., wn)), Some(lanes)) = (tile, coop_lanes(lower.caps())) else {
        return Err(lower.unsupported(format!("tiles of {rows} x {columns} cooperative matrices")));
    };
    let width = product.k.next_multiple_of(DEPTH);
    let half = lower.scratch(u64::from(product.m) * u64::from(width) * 2);
    let row_scale = lower.scratch(u64::from(product.m) * 4);
    halve(lower, product, (half, row_scale), width)?;
    let mut kernel = Kernel::new(source!("gemm_coop"))
        .link(source!("lib/product"))
        .set("BM", rows)
        .set("BN", columns)
        .set("WN", wn)
        .set("LANES", lanes)
        .set("GROUP", *group)
        .array("x_half", "vec4<f16>")
        .array("row_scale", "f32")
        .array("weight", "u32")
        .reads("scales", scales.elem)
        .writes("out", product.out.elem);
    let mut binds = vec![half, row_scale, (*packed).into(), (*scales).into(), product.out.into()];
    match &product.bias {
        Some((bias, ..)) => {
            kernel = kernel.link(source!("lib/epilogue_bias")).reads("bias", bias.elem);
            binds.push((*bias).into());
        }
        None => kernel = kernel.link(source!("lib/epilogue_plain")),
    }
    let (tiles_m, tiles_n) = (product.m.div_ceil(rows), product.n.div_ceil(columns));
    let groups = u64::from(tiles_m) * u64::from(tiles_n);
    lower.step(kernel, &binds, product.params(tiles_m, tiles_n), groups)
}

fn halve(lower: &mut Lower<'_>, product: &Product, (half, row_scale): (Bind, Bind), width: u32) -> Result<()> {
    const WG: u32 = 128;
    let kernel = Kernel::new(source!("half_rows"))
        .link(source!("lib/gemm_x"))
        .link(lower.reduction())
        .flag("ALIGNED", product.k.is_multiple_of(4))
        .set("WG", WG)
        .reads("x", product.x.elem)
        .role("half", RoleType::Array("vec4<f16>"), Access::Write)
        .role("row_scale", RoleType::Array("f32"), Access::Write);
    let params = Params::new().u32(product.k).u32(width).u32(product.m).f32(TOP);
    lower.step(kernel, &[product.x.into(), half, row_scale], params, u64::from(product.m))
}

#[cfg(test)]
mod tests {
    use crate::gpu::{Caps, CoopShape};
    use crate::graph::{Constant, DType, Dims, Graph, Node, Tensor, Value, ValueId};
    use crate::options::Options;
    use crate::plan::Plan;
    use crate::shader::assemble;

    fn layer(m: u32, n: u32, k: u32) -> Graph {
        let tensor = |dtype, dims: &[u32], constant| {
            let max = Dims::new(dims).unwrap();
            Value::Tensor(Tensor { dtype, stored: dtype, swapped: false, max, constant })
        };
        let values = vec![
            tensor(DType::F32, &[m, k], None),
            tensor(DType::U8, &[n, k.div_ceil(8) * 4], Some(0)),
            tensor(DType::F32, &[k.div_ceil(32), n], Some(1)),
            Value::Int(32),
            Value::Null,
            tensor(DType::F32, &[m, n], None),
        ];
        let args = (0..6).map(ValueId).collect();
        Graph {
            values,
            nodes: vec![Node { op: "et_vk.linear_q4gsw.default".into(), args }],
            inputs: vec![ValueId(0)],
            outputs: vec![ValueId(5)],
            constants: vec![Constant::Named { key: "w".into() }, Constant::Named { key: "s".into() }],
        }
    }

    #[test]
    fn every_tile_is_sound_wgsl() {
        let caps = Caps {
            f16: true,
            subgroup: Some((32, 32)),
            coop: vec![CoopShape { m: 16, n: 16, k: 16, f16_accumulate: false }],
            shared_bytes: 48 << 10,
            max_invocations: 1024,
            ..Caps::minimal()
        };
        for (m, n) in [(512, 8192), (512, 2048), (512, 1024), (20, 64)] {
            let plan = Plan::new(layer(m, n, 96), &caps, &Options::default()).unwrap();
            let steps = &plan.probes[0].lowered[0].steps;
            let names: Vec<&str> = steps.iter().map(|step| step.kernel.body.name()).collect();
            assert_eq!(names, ["half_rows", "gemm_coop"]);
            for step in steps {
                let text = assemble(&step.kernel);
                let module =
                    naga::front::wgsl::parse_str(&text).unwrap_or_else(|e| panic!("{}", e.emit_to_string(&text)));
                let all = naga::valid::Capabilities::all();
                let mut validator = naga::valid::Validator::new(naga::valid::ValidationFlags::all(), all);
                if let Err(e) = validator.validate(&module) {
                    panic!("{}", e.emit_to_string(&text));
                }
            }
        }
    }

    #[test]
    fn f32_can_be_forced() {
        let caps = Caps { f16: true, ..Caps::minimal() };
        let options = Options { force_f32_gemm: true, ..Options::default() };
        let plan = Plan::new(layer(512, 1024, 64), &caps, &options).unwrap();
        assert_eq!(plan.probes[0].lowered[0].steps[0].kernel.body.name(), "gemm_tile");
    }
}
