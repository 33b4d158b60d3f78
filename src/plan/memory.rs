use super::{Plan, StorageKind};
use crate::gpu::{Memory, MemoryKind};

impl Plan {
    /// Bytes that a device sets aside for the program at its largest shape, without kernel parameters.
    pub fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        let mut add = |kind, bytes: u64| memory.add(kind, bytes.max(16).next_multiple_of(16));
        for (&bytes, kind) in self.buffers.iter().zip(self.buffer_kinds()) {
            add(kind, bytes);
        }
        for storage in self.storages.iter().filter(|storage| storage.used) {
            match storage.kind {
                StorageKind::Weight => add(MemoryKind::Weights, storage.bytes),
                StorageKind::Cache => add(MemoryKind::Caches, storage.bytes),
                StorageKind::Activation(_) => {}
            }
        }
        add(MemoryKind::Staging, self.output_bytes());
        memory
    }

    /// What each shared buffer is for: scratch when it never holds a tensor.
    pub(crate) fn buffer_kinds(&self) -> Vec<MemoryKind> {
        let mut kinds = vec![MemoryKind::Scratch; self.buffers.len()];
        for storage in self.storages.iter().filter(|storage| storage.used) {
            if let StorageKind::Activation(buffer) = storage.kind
                && let Some(kind) = kinds.get_mut(buffer as usize)
            {
                *kind = MemoryKind::Activations;
            }
        }
        kinds
    }

    /// Bytes of the buffer that the host maps to read the outputs.
    pub(crate) fn output_bytes(&self) -> u64 {
        let storage = |id| self.storages.get(self.storage_of(id)? as usize);
        let bytes = |storage: &super::Storage| storage.bytes.next_multiple_of(16);
        self.graph.outputs.iter().filter_map(|&id| storage(id)).map(bytes).sum()
    }
}
