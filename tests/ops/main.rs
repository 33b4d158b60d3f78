//! Every operator against an f64 loop written from its formula, through payload bytes and a device.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

mod attention;
mod attention_forms;
mod attention_ramps;
mod binary;
mod cases;
mod cast;
mod convolution;
mod dtypes;
mod embedding_q4;
mod fill;
mod fused;
mod join;
mod large;
mod linear;
mod linear_q8;
mod norm;
mod pool;
mod q4_half_sums;
mod q4_layer;
mod q4_layers;
mod q4_variants;
mod q8;
mod qparams;
mod quantize;
mod reduce;
mod reindex;
mod rope;
mod sample;
mod sdpa;
mod shapes;
mod softmax;
mod symbolic;
mod take;
mod training;
mod unary;
mod view;
