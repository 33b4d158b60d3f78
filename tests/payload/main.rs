//! Malformed and hostile programs: every one is refused with a sentence, or runs; none panics, hangs or eats memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../../fuzz/exported.rs"]
mod exported;
#[path = "../../fuzz/recipe.rs"]
mod recipe;
#[path = "../../fuzz/targets.rs"]
mod targets;

mod arguments;
mod constants;
mod container;
mod corpus;
mod forms;
mod fused;
mod heap;
mod limits;
mod loads;
mod mutations;
mod scale;
mod seeds;
mod structure;
