use std::collections::HashMap;

use super::{Plan, Storage, StorageKind};
use crate::error::{Error, Result};
use crate::gpu::Caps;
use crate::graph::{DType, Dims, Graph, Node, Tensor, Value, ValueId};
use crate::ops::{Lowered, Op};
use crate::shader::Elem;

/// Storage of a value that is no tensor.
pub const NONE: u32 = u32::MAX;

/// Decides which tensors share their bytes.
///
/// Immutable constants with equal content share, and the longest gives its name; a constant that a node writes never does. The output of a view shares
/// with its input unless one of them is written.
pub(super) fn assign(graph: &Graph, ops: &[&'static Op], caps: &Caps) -> Result<(Vec<u32>, Vec<Storage>)> {
    let written = written(graph, ops);
    let mut of = vec![NONE; graph.values.len()];
    let mut storages: Vec<Storage> = Vec::new();
    let mut constants: HashMap<(String, DType, Elem, Option<Dims>), u32> = HashMap::new();
    for (index, value) in graph.values.iter().enumerate() {
        let Value::Tensor(tensor) = value else { continue };
        let elem = Elem::of(tensor.dtype, caps.f16);
        let is_written = written.get(index).copied().unwrap_or(false);
        let fresh = storages.len() as u32;
        let shared = match tensor.constant.and_then(|c| graph.constants.get(c as usize)) {
            Some(constant) if !is_written => {
                // Swapping depends on the shape: equal bytes of another shape are other bytes on the device.
                let swapped = tensor.swapped.then_some(tensor.max);
                *constants.entry((format!("{constant:?}"), tensor.stored, elem, swapped)).or_insert(fresh)
            }
            _ => fresh,
        };
        let own = storage(ValueId(index as u32), tensor, elem, is_written, caps, graph)?;
        match storages.get_mut(shared as usize) {
            Some(known) if known.bytes < own.bytes => *known = own,
            Some(_) => {}
            None => storages.push(own),
        }
        if let Some(slot) = of.get_mut(index) {
            *slot = shared;
        }
    }
    alias_views(graph, ops, caps, &written, &mut of);
    Ok((of, storages))
}

/// Enlarges the storages over which kernels write whole tiles.
pub(super) fn make_room(plan: &mut Plan) {
    let lowered = plan.probes.iter().flat_map(|probe| &probe.lowered);
    let room: Vec<(ValueId, u64)> = lowered.flat_map(|lowered| &lowered.room).copied().collect();
    for (id, bytes) in room {
        let storage = plan.storage_of(id).and_then(|storage| plan.storages.get_mut(storage as usize));
        if let Some(storage) = storage {
            storage.bytes = storage.bytes.max(bytes);
            storage.block = storage.block.max(bytes);
        }
    }
}

impl Plan {
    /// Refuses lowerings that would write beyond a storage.
    pub fn check_room(&self, lowered: &[Lowered]) -> Result<()> {
        for (id, bytes) in lowered.iter().flat_map(|lowered| &lowered.room) {
            let held =
                self.storage_of(*id).and_then(|storage| self.storages.get(storage as usize)).map_or(0, |s| s.bytes);
            if held < *bytes {
                let what = self.graph.describe(*id);
                return Err(Error::Internal(format!("{what} holds {held} bytes, whole tiles take {bytes}")));
            }
        }
        Ok(())
    }
}

fn bytes(tensor: &Tensor, elem: Elem) -> u64 {
    u64::from(tensor.max.numel()) * u64::from(elem.size())
}

fn storage(owner: ValueId, tensor: &Tensor, elem: Elem, written: bool, caps: &Caps, graph: &Graph) -> Result<Storage> {
    let bytes = bytes(tensor, elem);
    let kind = match (tensor.constant, written) {
        (Some(_), true) => StorageKind::Cache,
        (Some(_), false) => StorageKind::Weight,
        (None, _) => StorageKind::Activation(NONE),
    };
    let block = match kind {
        StorageKind::Weight if bytes > caps.max_buffer => {
            let rows = if tensor.swapped { tensor.max.last() } else { tensor.max.rows() };
            let row = bytes / u64::from(rows.max(1));
            caps.rows_of_binding(row) * row
        }
        _ => bytes,
    };
    if block > caps.max_buffer || (block == 0 && bytes > 0) {
        let limit = caps.max_buffer;
        let what = graph.describe(owner);
        return Err(Error::OutOfMemory(format!("{what} needs {bytes} bytes, one buffer holds {limit}")));
    }
    Ok(Storage { owner, bytes, block, kind, used: false })
}

/// Values that a node writes though they had content before: arguments written in place, and outputs that are inputs,
/// constants or the output of an earlier node.
fn written(graph: &Graph, ops: &[&'static Op]) -> Vec<bool> {
    let mut written = vec![false; graph.values.len()];
    let mut defined: Vec<bool> =
        graph.values.iter().map(|v| matches!(v, Value::Tensor(t) if t.constant.is_some())).collect();
    let set = |flags: &mut Vec<bool>, id: ValueId| {
        flags.get_mut(id.index()).is_some_and(|flag| std::mem::replace(flag, true))
    };
    for &id in &graph.inputs {
        set(&mut defined, id);
    }
    for (node, op) in graph.nodes.iter().zip(ops) {
        for &argument in op.writes {
            if let Some(&id) = node.args.get(argument) {
                set(&mut written, id);
            }
        }
        for id in graph.defines(node) {
            if set(&mut defined, id) {
                set(&mut written, id);
            }
        }
    }
    written
}

fn alias_views(graph: &Graph, ops: &[&'static Op], caps: &Caps, written: &[bool], of: &mut [u32]) {
    let is_written = |id: ValueId| written.get(id.index()).copied().unwrap_or(true);
    for (node, op) in graph.nodes.iter().zip(ops) {
        let Some((from, to)) = view_ends(graph, node, op) else { continue };
        if is_written(from) || is_written(to) || graph.inputs.contains(&to) {
            continue;
        }
        let (Some(a), Some(b)) = (graph.tensor(from), graph.tensor(to)) else { continue };
        let same = Elem::of(a.dtype, caps.f16) == Elem::of(b.dtype, caps.f16) && a.max.numel() == b.max.numel();
        let Some(&shared) = of.get(from.index()) else { continue };
        if let Some(slot) = of.get_mut(to.index()).filter(|_| same) {
            *slot = shared;
        }
    }
}

fn view_ends(graph: &Graph, node: &Node, op: &Op) -> Option<(ValueId, ValueId)> {
    let (first, last) = (*node.args.first()?, *node.args.last()?);
    let tensors = graph.tensor(first).is_some() && graph.tensor(last).is_some();
    (op.is_view && tensors).then_some((first, last))
}
