//! Payload bytes -> verified view -> owned [`Graph`](crate::graph::Graph). Nothing in the bytes is trusted.

mod header;
mod read;

#[allow(
    missing_docs,
    unused_imports,
    dead_code,
    clippy::all,
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    mismatched_lifetime_syntaxes,
    deprecated,
    unsafe_op_in_unsafe_fn
)]
#[path = "../../schema/vulkan_payload_generated.rs"]
mod schema;

pub use read::parse;
