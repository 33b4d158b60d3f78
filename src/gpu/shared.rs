//! Immutable buffers that several programs of a device use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use super::buffers::Buffer;
use super::device::lock;

/// Buffers by names of what they hold, as long as a program has them.
#[derive(Default)]
pub struct Shared {
    known: Mutex<HashMap<String, Vec<Weak<Buffer>>>>,
}

impl Shared {
    /// The buffers of this name, if all of them are there still.
    pub fn find(&self, name: &str) -> Option<Vec<Arc<Buffer>>> {
        lock(&self.known).get(name)?.iter().map(Weak::upgrade).collect()
    }

    /// Names buffers that nobody writes from now on.
    pub fn keep(&self, name: String, buffers: &[Arc<Buffer>]) {
        let mut known = lock(&self.known);
        known.retain(|_, buffers| buffers.iter().all(|buffer| buffer.strong_count() > 0));
        known.insert(name, buffers.iter().map(Arc::downgrade).collect());
    }
}
