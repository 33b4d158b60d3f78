//! Test models as payload bytes, run through the public path: load, execute, compare.
#![allow(dead_code, unused_imports, clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

pub mod data;
pub mod model;
pub mod q4;
pub mod writer;

pub use data::{Data, assert_close, tolerance, tolerance_of_halves};
pub use model::Model;
