//! ExecuTorch delegate for WebGPU.
//!
//! A program goes through one pipeline: the delegate payload's bytes become a verified [`graph`] ([`payload`]); passes
//! rewrite it ([`passes`]); each node is lowered to dispatches by a pure function ([`ops`]) that names kernel variants
//! ([`shader`]); a [`plan`] decides who shares memory; [`exec`] holds the device objects ([`gpu`]) and runs calls. C sees
//! [`ffi`] and nothing else.

pub mod error;
pub mod exec;
pub mod ffi;
pub mod gpu;
pub mod graph;
pub mod ops;
pub mod options;
pub mod passes;
pub mod payload;
pub mod plan;
pub mod shader;
