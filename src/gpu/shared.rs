//! Immutable buffers that several programs of a device use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use super::buffers::Buffer;
use super::device::lock;

/// Buffers by the content that they hold, as long as a program has them.
#[derive(Default)]
pub struct Shared {
    known: Mutex<HashMap<String, Vec<Weak<Buffer>>>>,
}

impl Shared {
    /// The buffers of this content, if all of them are there still.
    pub fn find(&self, content: &str) -> Option<Vec<Arc<Buffer>>> {
        lock(&self.known).get(content)?.iter().map(Weak::upgrade).collect()
    }

    /// Makes buffers known that hold this content from now on.
    pub fn keep(&self, content: String, buffers: &[Arc<Buffer>]) {
        let mut known = lock(&self.known);
        known.retain(|_, buffers| buffers.iter().all(|buffer| buffer.strong_count() > 0));
        known.insert(content, buffers.iter().map(Arc::downgrade).collect());
    }
}
