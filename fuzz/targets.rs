//! From untrusted bytes to a plan, without a device. The fuzz targets run this for ever, `tests/payload` for a while.

use std::cell::RefCell;
use std::collections::HashSet;

use executorch_webgpu::error::{Error, Result};
use executorch_webgpu::gpu::{Caps, PARAMS_STRIDE};
use executorch_webgpu::graph::{Graph, Value, ValueId};
use executorch_webgpu::ops::{Bind, Lowered};
use executorch_webgpu::options::Options;
use executorch_webgpu::passes;
use executorch_webgpu::payload;
use executorch_webgpu::plan::{DynamicAxis, Plan};
use executorch_webgpu::shader::{Kernel, assemble};

use super::exported;
use super::recipe::Recipe;

/// A payload as a program file would carry it.
pub fn payload(bytes: &[u8]) -> Result<()> {
    plan(&payload::parse(bytes)?)
}

/// A real payload with some bytes changed: three bytes of the input are a place and what goes there.
pub fn patched(changes: &[u8]) -> Result<()> {
    let mut bytes = exported::payload().to_vec();
    for change in changes.chunks_exact(3) {
        let place = usize::from(change[0]) << 8 | usize::from(change[1]);
        let length = bytes.len();
        bytes[place % length] = change[2];
    }
    payload(&bytes)
}

/// A graph whose values, operators and arguments the bytes choose.
pub fn graph(recipe: &[u8]) -> Result<()> {
    let graph = Recipe::new(recipe).graph();
    graph.check()?;
    plan(&graph)
}

/// Plans a graph for two devices, with and without options, and lowers it at shapes and numbers of later calls. Panics
/// when a plan breaks a promise.
pub fn plan(graph: &Graph) -> Result<()> {
    let half =
        Caps { f16: true, subgroup: Some((32, 32)), max_binding: 1 << 33, max_buffer: 1 << 34, ..Caps::minimal() };
    let chosen = Options { enable_f16_kv_cache: true, enable_f16_accumulate_gemm: true, ..Options::default() };
    let minimal = plan_for(graph, &Caps::minimal(), &Options::default());
    let full = plan_for(graph, &half, &chosen);
    minimal.and(full)
}

fn plan_for(graph: &Graph, caps: &Caps, options: &Options) -> Result<()> {
    let result = passes::run(graph.clone(), caps, options).and_then(|graph| Plan::new(graph, caps, options));
    match result {
        Ok(plan) => call(&plan, caps, options),
        Err(Error::Internal(why)) => panic!("internal error: {why}\n{graph}"),
        Err(error) => {
            assert!(error.to_string().len() < 64 << 10, "an error of {} bytes", error.to_string().len());
            Err(error)
        }
    }
}

fn call(plan: &Plan, caps: &Caps, options: &Options) -> Result<()> {
    verify_all(plan, caps);
    assert!(!plan.to_string().is_empty() && plan.buffers.iter().all(|&bytes| bytes <= caps.max_buffer));
    let whole: Vec<DynamicAxis> = plan
        .graph
        .inputs
        .iter()
        .enumerate()
        .flat_map(|(input, _)| (0..8).map(move |axis| DynamicAxis { input, axis }))
        .collect();
    for (size, number, axes) in
        [(2, 3, &whole), (1, -1, &whole), (0, 1 << 40, &plan.dynamic), (3, 1 << 30, &plan.dynamic), (0, 0, &whole)]
    {
        let mut shapes = plan.max_shapes();
        for axis in axes {
            let dims = &mut shapes[plan.graph.inputs[axis.input].index()];
            if let Some(&max) = dims.get(axis.axis) {
                *dims = dims.with(axis.axis, max.min(size))?;
            }
        }
        let mut symints = vec![0; plan.graph.values.len()];
        for id in plan.graph.inputs.iter().filter(|id| *plan.graph.value(**id) == Value::SymInt) {
            symints[id.index()] = number as i32;
        }
        let host = |_: ValueId, _: usize| Ok(number);
        match plan.lower_all(&mut shapes, &mut symints, &host, (caps, options)) {
            Ok(lowered) => lowered.iter().for_each(|lowered| verify(plan, lowered, caps)),
            Err(Error::Internal(why)) => panic!("internal error: {why}\n{}", plan.graph),
            Err(_) => {}
        }
    }
    Ok(())
}

/// Panics when a step of the plan needs what the device does not have.
pub fn verify_all(plan: &Plan, caps: &Caps) {
    plan.probes.iter().flat_map(|probe| &probe.lowered).for_each(|lowered| verify(plan, lowered, caps));
}

fn verify(plan: &Plan, lowered: &Lowered, caps: &Caps) {
    for (id, dims) in &lowered.shapes {
        let max = plan.graph.tensor(*id).map(|t| t.max).unwrap_or_default();
        assert!(dims.len() == max.len() && dims.iter().zip(max.iter()).all(|(live, max)| live <= max));
    }
    for step in &lowered.steps {
        assert_valid(&step.kernel);
        let roles = &step.kernel.roles;
        assert_eq!(step.binds.len(), roles.len(), "{step:?}");
        assert!(roles.len() <= caps.max_storage_buffers as usize, "{step:?}");
        assert!(step.params.len() * 4 <= PARAMS_STRIDE as usize, "{step:?}");
        assert!(step.grid.iter().all(|&groups| (1..=caps.max_groups).contains(&groups)), "{step:?}");
        for bind in &step.binds {
            match *bind {
                Bind::Value(id) => assert!(plan.graph.tensor(id).is_some(), "{step:?}"),
                Bind::Range(id, offset, bytes) => {
                    assert!(plan.graph.tensor(id).is_some(), "{step:?}");
                    assert!(offset % u64::from(caps.storage_alignment) == 0 && bytes <= caps.binding(), "{step:?}");
                }
                Bind::Scratch(n) => assert!((n as usize) < lowered.scratch.len(), "{step:?}"),
            }
        }
    }
}

thread_local! {
    static VALID: RefCell<HashSet<Kernel>> = RefCell::default();
}

/// Panics when the text of a kernel variant is no valid WGSL.
fn assert_valid(kernel: &Kernel) {
    if !VALID.with_borrow_mut(|valid| valid.insert(kernel.clone())) {
        return;
    }
    let text = assemble(kernel);
    let module = naga::front::wgsl::parse_str(&text).unwrap_or_else(|e| panic!("{}", e.emit_to_string(&text)));
    let capabilities = naga::valid::Capabilities::SHADER_FLOAT16 | naga::valid::Capabilities::SUBGROUP;
    let mut validator = naga::valid::Validator::new(naga::valid::ValidationFlags::all(), capabilities);
    validator.validate(&module).unwrap_or_else(|e| panic!("{}", e.emit_to_string(&text)));
}
