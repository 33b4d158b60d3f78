//! The dispatches of one combination of input shapes, kept so that the next call with the same shapes changes nothing.

use std::collections::HashMap;
use std::sync::Arc;

use super::memory::{Arena, Place};
use crate::error::{Error, Result};
use crate::gpu::{BindGroup, Buffer, Dispatch, Encoded, Gpu, MemoryKind, PARAMS_STRIDE};
use crate::graph::{Dims, Value, ValueId};
use crate::ops::{Bound, Lowered, Step};
use crate::options::Options;
use crate::plan::{Plan, Probe, apply};
use crate::shader::Kernel;

/// Bind groups by kernel and places: the same in every sequence that uses them.
pub(super) type Groups = HashMap<(Kernel, Vec<Place>), Arc<BindGroup>>;

/// Reads an element of a graph input from host memory.
pub(super) type HostRead<'a> = &'a dyn Fn(ValueId, usize) -> Result<i64>;

/// What building dispatches needs besides the sequence itself.
pub(super) struct Workshop<'a> {
    pub gpu: &'a Gpu,
    pub plan: &'a mut Plan,
    pub arena: &'a mut Arena,
    pub groups: &'a mut Groups,
    pub options: &'a Options,
}

pub(super) struct Sequence {
    /// Live shapes of the inputs; `None` when nothing valid is here.
    pub key: Option<Vec<Dims>>,
    /// When it was last used.
    pub used: u64,
    pub shapes: Vec<Dims>,
    pub symints: Vec<i32>,
    pub dispatches: Vec<Dispatch>,
    pub common: BindGroup,
    /// The next call's commands, encoded while the device worked on this one's.
    pub ready: Option<Encoded>,
    lowered: Vec<Lowered>,
    /// First dispatch of each node.
    starts: Vec<usize>,
    /// Nodes that depend on per-call numbers.
    volatile: Arc<[Volatile]>,
    /// Numbers for which they were asked last.
    asked: Vec<i32>,
    bounds: Vec<Bound>,
    params: Buffer,
}

/// A node that depends on these numbers, or on what an input holds.
#[derive(Clone)]
struct Volatile {
    node: usize,
    numbers: Vec<usize>,
    reads_input: bool,
}

impl Sequence {
    pub fn new(gpu: &Gpu, steps: usize, live: &Buffer) -> Result<Sequence> {
        let params = params_buffer(gpu, steps)?;
        let common = gpu.bind_common(&params, live)?;
        let (shapes, symints, dispatches, lowered) = Default::default();
        let (starts, asked, bounds) = Default::default();
        Ok(Sequence {
            key: None,
            used: 0,
            shapes,
            symints,
            dispatches,
            common,
            ready: None,
            lowered,
            starts,
            volatile: Arc::new([]),
            asked,
            bounds,
            params,
        })
    }

    /// Bytes of its parameters on the device.
    pub fn bytes(&self) -> u64 {
        self.params.bytes()
    }

    /// Lowers the whole graph for `key` and makes all dispatches. Fails before anything on the device changes when a number
    /// of the call is out of bounds.
    pub fn build(
        &mut self,
        shop: &mut Workshop<'_>,
        key: &[Dims],
        symints: Vec<i32>,
        host: HostRead<'_>,
        live: &Buffer,
    ) -> Result<()> {
        self.key = None;
        self.symints = symints;
        self.shapes = shop.plan.max_shapes();
        for (&id, dims) in shop.plan.graph.inputs.iter().zip(key) {
            if let Some(slot) = self.shapes.get_mut(id.index()) {
                *slot = *dims;
            }
        }
        let device = (shop.gpu.caps(), shop.options);
        self.lowered = shop.plan.lower_all(&mut self.shapes, &mut self.symints, host, device)?;
        self.collect_bounds();
        self.check_bounds(shop.plan, |_| true)?;
        shop.plan.check_room(&self.lowered)?;
        self.make(shop, live)?;
        self.key = Some(key.to_vec());
        Ok(())
    }

    /// Makes the dispatches that a probe foresaw. The numbers in it are no call's, so its bounds say nothing yet.
    pub fn adopt(&mut self, shop: &mut Workshop<'_>, probe: &Probe, live: &Buffer) -> Result<()> {
        self.shapes = probe.shapes.clone();
        self.symints = probe.symints.clone();
        self.lowered = probe.lowered.clone();
        self.collect_bounds();
        self.make(shop, live)?;
        self.key = probe.complete.then(|| probe.inputs.clone());
        Ok(())
    }

    fn make(&mut self, shop: &mut Workshop<'_>, live: &Buffer) -> Result<()> {
        let graph = &shop.plan.graph;
        let symint = |id: &ValueId| matches!(graph.value(*id), Value::SymInt).then(|| id.index());
        let asked = self.lowered.iter().zip(&graph.nodes).enumerate().filter(|(_, (lowered, _))| lowered.volatile);
        let volatile = asked.map(|(node, (lowered, from))| {
            let numbers = graph.reads(from).iter().filter_map(symint).collect();
            Volatile { node, numbers, reads_input: lowered.reads_input }
        });
        self.volatile = volatile.collect();
        self.asked.clone_from(&self.symints);
        let steps = self.lowered.iter().map(|l| l.steps.len()).sum();
        self.reserve(shop.gpu, steps, live)?;
        self.make_dispatches(shop)
    }

    fn reserve(&mut self, gpu: &Gpu, steps: usize, live: &Buffer) -> Result<()> {
        if steps as u64 * u64::from(PARAMS_STRIDE) > self.params.bytes() {
            log::warn!("a shape outside the probed ones needs {steps} dispatches");
            self.params = params_buffer(gpu, steps)?;
            self.common = gpu.bind_common(&self.params, live)?;
        }
        Ok(())
    }

    fn make_dispatches(&mut self, shop: &mut Workshop<'_>) -> Result<()> {
        self.ready = None;
        self.dispatches.clear();
        self.starts.clear();
        let mut params = Vec::new();
        for (node, lowered) in self.lowered.iter().enumerate() {
            self.starts.push(self.dispatches.len());
            shop.arena.grow_scratch(shop.gpu, shop.plan, node, &lowered.scratch)?;
            for step in &lowered.steps {
                let slot = self.dispatches.len();
                self.dispatches.push(dispatch(shop, node, step, slot)?);
                params.extend(words(step));
                params.resize(params.len().next_multiple_of(PARAMS_STRIDE as usize), 0);
            }
        }
        if !params.is_empty() {
            shop.gpu.write(&self.params, 0, &params)?;
        }
        Ok(())
    }

    /// Asks the nodes that depend on per-call numbers again, in order, where a number is another one. Returns false when a shape came out different, so
    /// that everything has to be built anew. Fails, with nothing submitted, when a number is out of bounds.
    pub fn refresh(&mut self, shop: &mut Workshop<'_>, host: HostRead<'_>) -> Result<bool> {
        let mut changed = Vec::new();
        for (index, Volatile { node, numbers, reads_input }) in self.volatile.clone().iter().enumerate() {
            let node = *node;
            if !reads_input && numbers.iter().all(|&id| self.symints.get(id) == self.asked.get(id)) {
                continue;
            }
            let answer = self.lower(shop, node, host);
            let same = |new: &Lowered, old: &Lowered| {
                new.shapes == old.shapes && new.steps.len() == old.steps.len() && new.scratch == old.scratch
            };
            let known = self.lowered.get_mut(node).filter(|known| answer.as_ref().is_ok_and(|new| same(new, known)));
            let Some(known) = known else {
                // A number out of bounds explains better than what it leads to.
                self.check_remaining(shop, host, index)?;
                return answer.map(|_| false);
            };
            let lowered = answer?;
            apply(&lowered, &mut self.shapes, &mut self.symints);
            if lowered.steps != known.steps {
                changed.push(node);
            }
            *known = lowered;
        }
        self.asked.clone_from(&self.symints);
        self.check_bounds(shop.plan, |_| true)?;
        changed.into_iter().try_for_each(|node| self.patch(shop, node))?;
        Ok(true)
    }

    fn lower(&self, shop: &Workshop<'_>, node: usize, host: HostRead<'_>) -> Result<Lowered> {
        shop.plan.lower_one(node, &self.shapes, &self.symints, host, (shop.gpu.caps(), shop.options))
    }

    fn patch(&mut self, shop: &mut Workshop<'_>, node: usize) -> Result<()> {
        self.ready = None;
        let start = self.starts.get(node).copied().unwrap_or(0);
        let steps = self.lowered.get(node).map_or(&[][..], |l| &l.steps);
        for (index, step) in steps.iter().enumerate() {
            let slot = start + index;
            let fresh = dispatch(shop, node, step, slot)?;
            shop.gpu.write(&self.params, slot as u64 * u64::from(PARAMS_STRIDE), &words(step))?;
            if let Some(known) = self.dispatches.get_mut(slot) {
                *known = fresh;
            }
        }
        Ok(())
    }

    fn collect_bounds(&mut self) {
        self.bounds.clear();
        for bound in self.lowered.iter().flat_map(|l| &l.bounds) {
            if !self.bounds.contains(bound) {
                self.bounds.push(bound.clone());
            }
        }
    }

    /// Checks the bounds on all numbers that inputs alone make, though the volatile nodes from the `first`-th on were not
    /// asked yet.
    fn check_remaining(&mut self, shop: &Workshop<'_>, host: HostRead<'_>, first: usize) -> Result<()> {
        let graph = &shop.plan.graph;
        let rest: Vec<usize> = self.volatile.iter().map(|volatile| volatile.node).skip(first).collect();
        let mut told = graph.inputs.clone();
        for (index, node) in graph.nodes.iter().enumerate() {
            let Some((id, _)) = self.lowered.get(index).and_then(|known| known.symint) else { continue };
            if !graph.reads(node).iter().all(|read| told.contains(read)) {
                continue;
            }
            if rest.contains(&index) {
                let Ok(lowered) = self.lower(shop, index, host) else { continue };
                apply(&lowered, &mut self.shapes, &mut self.symints);
            }
            told.push(id);
        }
        self.check_bounds(shop.plan, |id| told.contains(&id))
    }

    /// Checks the bounds on the numbers that are `told`.
    fn check_bounds(&self, plan: &Plan, told: impl Fn(ValueId) -> bool) -> Result<()> {
        self.bounds.iter().try_for_each(|bound| {
            let id = plan.slots.iter().position(|&slot| slot == bound.value.slot);
            match id.filter(|&id| told(ValueId(id as u32))).and_then(|id| self.symints.get(id)) {
                Some(&live) => bound.check(live),
                None => Ok(()),
            }
        })
    }

    /// One name and the dispatch count per node, for profiles: `aten.mm.default gemm BM=64 <16>`.
    pub fn names(&self, plan: &Plan) -> Vec<String> {
        let nodes = plan.graph.nodes.iter().zip(&self.lowered);
        nodes
            .flat_map(|(node, lowered)| {
                lowered.steps.iter().map(|step| format!("{} {}", node.op, crate::plan::describe(step)))
            })
            .collect()
    }
}

fn params_buffer(gpu: &Gpu, steps: usize) -> Result<Buffer> {
    gpu.buffer(MemoryKind::Parameters, steps.max(1) as u64 * u64::from(PARAMS_STRIDE), "kernel parameters")
}

fn words(step: &Step) -> Vec<u8> {
    step.params.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn dispatch(shop: &mut Workshop<'_>, node: usize, step: &Step, slot: usize) -> Result<Dispatch> {
    if step.params.len() * 4 > PARAMS_STRIDE as usize {
        let bytes = step.params.len() * 4;
        return Err(Error::Internal(format!("{} has {bytes} bytes of parameters", step.kernel.body.name())));
    }
    let pipeline = shop.gpu.pipeline(&step.kernel)?;
    let places: Vec<Place> = step.binds.iter().map(|&bind| shop.arena.place(shop.gpu, shop.plan, node, bind)).collect();
    let group = match shop.groups.get(&(step.kernel.clone(), places.clone())) {
        Some(group) => group.clone(),
        None => {
            let ranges = places.iter().map(|&place| shop.arena.range(place)).collect::<Result<Vec<_>>>()?;
            let group = Arc::new(shop.gpu.bind(&pipeline, &ranges)?);
            shop.groups.insert((step.kernel.clone(), places), group.clone());
            group
        }
    };
    Ok(Dispatch { pipeline, group, params: slot as u32 * PARAMS_STRIDE, grid: step.grid })
}
