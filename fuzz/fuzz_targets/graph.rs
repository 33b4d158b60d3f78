//! Bytes as a recipe for a graph.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../exported.rs"]
mod exported;
#[allow(dead_code)]
#[path = "../recipe.rs"]
mod recipe;
#[allow(dead_code)]
#[path = "../targets.rs"]
mod targets;

fuzz_target!(|recipe: &[u8]| {
    // A refusal is a result like any other; only a panic is a finding.
    let _ = targets::graph(recipe);
});
