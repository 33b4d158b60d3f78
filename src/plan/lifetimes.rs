use super::{Plan, StorageKind};
use crate::graph::ValueId;

const NEVER: usize = usize::MAX;

/// First and last node that touches each storage; inputs start before the first node and outputs never end.
fn lifetimes(plan: &Plan) -> Vec<Option<(usize, usize)>> {
    let mut spans: Vec<Option<(usize, usize)>> = vec![None; plan.storages.len()];
    let mut touch = |id: ValueId, node: usize| {
        let storage = plan.storage.get(id.index()).copied().unwrap_or(super::NONE);
        if let Some(span) = spans.get_mut(storage as usize) {
            *span = Some(span.map_or((node, node), |(first, last)| (first.min(node), last.max(node))));
        }
    };
    for &id in &plan.graph.inputs {
        touch(id, 0);
    }
    for (index, node) in plan.graph.nodes.iter().enumerate() {
        for id in plan.graph.reads(node).into_iter().chain(plan.graph.defines(node)) {
            touch(id, index);
        }
    }
    for &id in &plan.graph.outputs {
        touch(id, NEVER);
    }
    spans
}

/// Gives every activation and scratch area a shared buffer: areas that live at the same time get different ones.
pub(super) fn assign(plan: &mut Plan) {
    let spans = lifetimes(plan);
    let mut pool = Pool::default();
    let scratch = scratch_sizes(plan);
    let mut chosen: Vec<Option<u32>> = vec![None; plan.storages.len()];
    plan.scratch = vec![Vec::new(); plan.graph.nodes.len()];
    for node in 0..plan.graph.nodes.len().max(1) {
        for (storage, span) in spans.iter().enumerate() {
            let starts = span.is_some_and(|(first, _)| first == node);
            let Some(entry) = plan.storages.get(storage).filter(|_| starts) else { continue };
            if matches!(entry.kind, StorageKind::Activation(_)) {
                let buffer = pool.take(entry.bytes);
                if let Some(slot) = chosen.get_mut(storage) {
                    *slot = Some(buffer);
                }
            }
        }
        let areas: Vec<u32> = scratch.get(node).into_iter().flatten().map(|&bytes| pool.take(bytes)).collect();
        areas.iter().for_each(|&buffer| pool.free(buffer));
        if let Some(slot) = plan.scratch.get_mut(node) {
            *slot = areas;
        }
        for (storage, span) in spans.iter().enumerate() {
            if span.is_some_and(|(_, last)| last == node) {
                chosen.get(storage).copied().flatten().into_iter().for_each(|buffer| pool.free(buffer));
            }
        }
    }
    for (storage, (buffer, span)) in plan.storages.iter_mut().zip(chosen.into_iter().zip(&spans)) {
        storage.used = span.is_some();
        if let Some(buffer) = buffer {
            storage.kind = StorageKind::Activation(buffer);
        }
    }
    plan.buffers = pool.sizes;
}

fn scratch_sizes(plan: &Plan) -> Vec<Vec<u64>> {
    let mut sizes: Vec<Vec<u64>> = vec![Vec::new(); plan.graph.nodes.len()];
    for probe in &plan.probes {
        for (node, lowered) in sizes.iter_mut().zip(&probe.lowered) {
            node.resize(node.len().max(lowered.scratch.len()), 0);
            node.iter_mut().zip(&lowered.scratch).for_each(|(most, &bytes)| *most = bytes.max(*most));
        }
    }
    sizes
}

/// Buffers by size; a free one is taken again by the area that fits it best.
#[derive(Default)]
struct Pool {
    sizes: Vec<u64>,
    free: Vec<u32>,
}

impl Pool {
    fn take(&mut self, bytes: u64) -> u32 {
        let size = |buffer: &u32| self.sizes.get(*buffer as usize).copied().unwrap_or(0);
        let fitting = self.free.iter().enumerate().filter(|(_, b)| size(b) >= bytes).min_by_key(|(_, b)| size(b));
        let best = fitting.or_else(|| self.free.iter().enumerate().max_by_key(|(_, b)| size(b))).map(|(i, _)| i);
        let Some(index) = best else {
            self.sizes.push(bytes);
            return self.sizes.len() as u32 - 1;
        };
        let buffer = self.free.swap_remove(index);
        if let Some(size) = self.sizes.get_mut(buffer as usize) {
            *size = bytes.max(*size);
        }
        buffer
    }

    fn free(&mut self, buffer: u32) {
        self.free.push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_buffer_is_taken_again_by_the_best_fit() {
        let mut pool = Pool::default();
        let (a, b, c) = (pool.take(100), pool.take(10), pool.take(50));
        assert_eq!((a, b, c), (0, 1, 2));
        pool.free(a);
        pool.free(c);
        assert_eq!(pool.take(40), c);
        assert_eq!(pool.take(200), a);
        assert_eq!(pool.sizes, [200, 10, 50]);
    }
}
