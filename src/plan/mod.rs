//! Graph -> what to allocate: storages (who shares bytes with whom), buffers (who shares memory over time), live slots.
//! Pure data; [`crate::exec`] turns it into device objects.

mod depth;
mod display;
mod lifetimes;
mod limits;
mod lowering;
mod memory;
mod probe;
mod products;
mod refusals;
mod resolve;
mod storage;

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::gpu::Caps;
use crate::graph::{Dims, Graph, Value, ValueId};
use crate::ops::{Env, Op};
use crate::options::Options;
use crate::shader::{Elem, Kernel, LIVE_VECTORS};

pub use depth::Depth;
pub(crate) use display::describe;
pub(crate) use lowering::apply;
pub use probe::{DynamicAxis, Probe};
pub use refusals::refusals;
pub use storage::NONE;

/// What a storage is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageKind {
    /// An immutable constant.
    Weight,
    /// A constant that the program writes.
    Cache,
    /// An input, an output or an intermediate tensor: it lives in this buffer of [`Plan::buffers`].
    Activation(u32),
}

/// Bytes of one or more tensors.
#[derive(Clone, Debug, PartialEq)]
pub struct Storage {
    /// The tensor that gives it its name.
    pub owner: ValueId,
    /// Bytes at the largest shape.
    pub bytes: u64,
    /// Bytes of each buffer that holds it; only the last may hold fewer. A weight beyond one buffer has several, of whole rows.
    pub block: u64,
    /// Kind.
    pub kind: StorageKind,
    /// False when no node and no output touches it: it gets no memory.
    pub used: bool,
}

/// The plan of one program.
#[derive(Debug)]
pub struct Plan {
    /// The graph after all passes.
    pub graph: Graph,
    /// The operator of each node.
    pub ops: Vec<&'static Op>,
    /// Storage of each value; [`NONE`] for scalars.
    pub storage: Vec<u32>,
    /// All storages.
    pub storages: Vec<Storage>,
    /// Bytes of each shared buffer.
    pub buffers: Vec<u64>,
    /// For each node, the shared buffer of each of its scratch areas.
    pub scratch: Vec<Vec<u32>>,
    /// Slot in the live buffer of each value.
    pub slots: Vec<u32>,
    /// Input dimensions that change from call to call.
    pub dynamic: Vec<DynamicAxis>,
    /// One lowering of the whole graph per probed shape, the largest first.
    pub probes: Vec<Probe>,
}

impl Plan {
    /// Plans a graph for a device. Fails with all unknown operators at once, or with the first argument that an operator
    /// refuses at the largest shape.
    pub fn new(graph: Graph, caps: &Caps, options: &Options) -> Result<Plan> {
        let mut plan = Plan::unlowered(graph, caps)?;
        plan.probes = probe::run(&plan, caps, options)?;
        storage::make_room(&mut plan);
        lifetimes::assign(&mut plan);
        Ok(plan)
    }

    /// A plan whose nodes are not lowered yet.
    fn unlowered(graph: Graph, caps: &Caps) -> Result<Plan> {
        let ops = resolve::run(&graph)?;
        let slots = slots(&graph)?;
        let (storage, storages) = storage::assign(&graph, &ops, caps)?;
        let dynamic = probe::dynamic_axes(&graph);
        let (buffers, scratch, probes) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Plan { graph, ops, storage, storages, buffers, scratch, slots, dynamic, probes })
    }

    /// The kernel variants of all probes, each once.
    pub fn kernels(&self) -> Vec<&Kernel> {
        let lowered = self.probes.iter().flat_map(|probe| &probe.lowered);
        let kernels: HashSet<&Kernel> = lowered.flat_map(|lowered| &lowered.steps).map(|step| &step.kernel).collect();
        kernels.into_iter().collect()
    }

    /// Element type of a tensor on a device.
    pub fn elem(&self, id: ValueId, caps: &Caps) -> Option<Elem> {
        self.graph.tensor(id).map(|t| Elem::of(t.dtype, caps.f16))
    }

    /// The largest shape of every value.
    pub fn max_shapes(&self) -> Vec<Dims> {
        let dims = |value: &Value| match value {
            Value::Tensor(t) => t.max,
            _ => Dims::default(),
        };
        self.graph.values.iter().map(dims).collect()
    }

    /// An environment over this plan.
    pub fn env<'a>(
        &'a self,
        shapes: &'a [Dims],
        symints: &'a [i32],
        host: &'a dyn Fn(ValueId, usize) -> Result<i64>,
        (caps, options): (&'a Caps, &'a Options),
    ) -> Env<'a> {
        let (graph, slots, storage) = (&self.graph, &self.slots[..], &self.storage[..]);
        Env { graph, shapes, symints, slots, storage, host, caps, options }
    }
}

fn slots(graph: &Graph) -> Result<Vec<u32>> {
    let mut next = 0;
    let slots: Vec<u32> = graph
        .values
        .iter()
        .map(|value| match value {
            Value::SymInt => {
                next += 1;
                next
            }
            _ => 0,
        })
        .collect();
    if next as usize >= LIVE_VECTORS * 4 {
        return Err(Error::unsupported("SymInt", format!("{next} of them, at most {}", LIVE_VECTORS * 4 - 1)));
    }
    Ok(slots)
}
