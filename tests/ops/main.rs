//! Every operator against an f64 loop written from its formula, through payload bytes and a device.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

mod attention;
mod binary;
mod cases;
mod cast;
mod fill;
mod join;
mod linear;
mod reindex;
mod rope;
mod unary;
mod view;
