//! What users of GPU delegates run into: threads, leaks, lost devices, odd arguments. Each call gives a result or an error
//! with a sentence, and the next call works.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../../fuzz/exported.rs"]
mod exported;
#[path = "../payload/seeds.rs"]
mod seeds;

mod boundary;
mod calls;
mod child;
mod device;
mod host;
mod logged;
mod memory;
mod replay;
mod symints;
mod threads;
