use std::collections::BTreeSet;

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
    let nodes = plan.graph.nodes.len().max(1);
    let (starts, ends) = (at_node(&spans, nodes, |span| span.0), at_node(&spans, nodes, |span| span.1));
    let mut pool = Pool::default();
    let scratch = scratch_sizes(plan);
    plan.scratch = vec![Vec::new(); plan.graph.nodes.len()];
    for node in 0..nodes {
        for &storage in starts.get(node).into_iter().flatten() {
            let entry = plan.storages.get_mut(storage).map(|entry| (entry.bytes, &mut entry.kind));
            if let Some((bytes, StorageKind::Activation(buffer))) = entry {
                *buffer = pool.take(bytes);
            }
        }
        let areas: Vec<u32> = scratch.get(node).into_iter().flatten().map(|&bytes| pool.take(bytes)).collect();
        areas.iter().for_each(|&buffer| pool.free(buffer));
        if let Some(slot) = plan.scratch.get_mut(node) {
            *slot = areas;
        }
        for &storage in ends.get(node).into_iter().flatten() {
            if let Some(StorageKind::Activation(buffer)) = plan.storages.get(storage).map(|entry| entry.kind) {
                pool.free(buffer);
            }
        }
    }
    for (storage, span) in plan.storages.iter_mut().zip(&spans) {
        storage.used = span.is_some();
    }
    plan.buffers = pool.sizes;
}

/// The storages whose span starts, or ends, at each node.
fn at_node(spans: &[Option<(usize, usize)>], nodes: usize, end: impl Fn((usize, usize)) -> usize) -> Vec<Vec<usize>> {
    let mut at = vec![Vec::new(); nodes];
    for (storage, span) in spans.iter().enumerate() {
        let node = span.map_or(NEVER, &end);
        at.get_mut(node).into_iter().for_each(|list| list.push(storage));
    }
    at
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
    free: BTreeSet<(u64, u32)>,
}

impl Pool {
    fn take(&mut self, bytes: u64) -> u32 {
        let best = self.free.range((bytes, 0)..).next().or(self.free.last()).copied();
        let Some(entry @ (_, buffer)) = best else {
            self.sizes.push(bytes);
            return self.sizes.len() as u32 - 1;
        };
        self.free.remove(&entry);
        if let Some(size) = self.sizes.get_mut(buffer as usize) {
            *size = bytes.max(*size);
        }
        buffer
    }

    fn free(&mut self, buffer: u32) {
        self.free.insert((self.sizes.get(buffer as usize).copied().unwrap_or(0), buffer));
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
