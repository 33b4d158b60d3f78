//! What passes make of a real program.

use executorch_webgpu::gpu::Caps;
use executorch_webgpu::graph::DType;
use executorch_webgpu::ops::INTERNAL;
use executorch_webgpu::options::Options;
use executorch_webgpu::plan::{Depth, Plan};
use executorch_webgpu::{passes, payload};

use crate::common::Model;
use crate::exported;

/// A GPU with subgroups of 32 and without cooperative matrices.
fn device() -> Caps {
    Caps {
        f16: true,
        subgroup: Some((32, 32)),
        max_invocations: 1024,
        shared_bytes: 48 << 10,
        max_storage_buffers: 16,
        ..Caps::minimal()
    }
}

fn plan(caps: &Caps) -> Plan {
    let options = Options::default();
    let graph = passes::run(payload::parse(exported::payload()).unwrap(), caps, &options).unwrap();
    Plan::new(graph, caps, &options).unwrap()
}

/// The depth of a call with one token.
fn decode(plan: &Plan) -> Depth {
    let one_row = plan.probes.iter().find(|probe| probe.inputs[0].numel() == 1).unwrap();
    plan.depth(one_row)
}

#[test]
fn a_decode_step_has_few_levels() {
    let plan = plan(&device());
    assert_eq!(decode(&plan), Depth { steps: 19, levels: 17, waits: 17 });
}

#[test]
fn internal_operators_are_unknown_to_payloads() {
    for op in INTERNAL.iter().flat_map(|family| family.iter()) {
        let mut m = Model::new();
        let (x, y) = (m.input(DType::F32, &[2, 8]), m.tensor(DType::F32, &[2, 8]));
        m.op(op.name, &[x, x, y]);
        m.output(y);
        let text = m.load().map(|_| ()).unwrap_err().to_string();
        assert!(text.contains(op.name) && text.contains("no kernel"), "{text}");
    }
}
