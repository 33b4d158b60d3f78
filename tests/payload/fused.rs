//! What passes make of a real program.

use executorch_webgpu::gpu::{Caps, CoopShape};
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
    // The embedding beside two slices of tables, six levels for each of two layers, the last row and the vocabulary.
    let plan = plan(&device());
    assert_eq!(decode(&plan), Depth { steps: 17, levels: 15, waits: 15 });
}

/// How often a kernel runs in the prefill of the longest prompt.
fn count(plan: &Plan, body: &str) -> usize {
    let steps = plan.probes[0].lowered.iter().flat_map(|lowered| &lowered.steps);
    steps.filter(|step| step.kernel.body.name() == body).count()
}

#[test]
fn a_prefill_norms_and_halves_each_input_once() {
    let coop = CoopShape { m: 16, n: 16, k: 16, f16_accumulate: false };
    let plan = plan(&Caps { coop: vec![coop], ..device() });
    // Two layers of two norms each, and one row before the vocabulary that the GEMV takes.
    assert_eq!((count(&plan, "norm"), count(&plan, "gemv_q4")), (4, 1));
    let products = count(&plan, "gemm_coop") + count(&plan, "gemm_thin");
    assert_eq!((products, count(&plan, "half_rows")), (14, 8), "{plan}");
}

#[test]
fn a_device_without_subgroups_norms_first() {
    let plan = plan(&Caps { subgroup: None, ..device() });
    assert_eq!(decode(&plan), Depth { steps: 32, levels: 24, waits: 28 });
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
