//! Bytes with the magic of a payload are one; all others are changes to a real one.
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

fuzz_target!(|bytes: &[u8]| {
    // A refusal is a result like any other; only a panic is a finding.
    let _ = match bytes.get(4..8) {
        Some(b"VH00") => targets::payload(bytes),
        _ => targets::patched(bytes),
    };
});
