//! Sound programs to start from.
#![allow(dead_code)]

use executorch_webgpu::graph::DType;

use crate::common::{Data, Model, q4};

pub const F32: DType = DType::F32;

/// `relu` of a dynamic input.
pub fn smallest() -> Model {
    let mut m = Model::new();
    let (x, y) = (m.input(DType::F32, &[2, 3]), m.tensor(DType::F32, &[2, 3]));
    m.op("aten.relu.default", &[x, y]);
    m.output(y);
    m
}

/// One layer of a language model: position from a tensor, rotary embedding, cache, attention, a 4-bit product.
pub fn decoder() -> Model {
    decoder_of(2, 8, 16, 12)
}

/// The same with `heads` heads of `d`, room for `capacity` rows and `n` results a head; at most four rows a call.
pub fn decoder_of(heads: u32, d: u32, capacity: u32, n: u32) -> Model {
    decoder_with_bound(4, (heads, d), capacity, n)
}

/// The same with at most `seq` rows a call.
pub fn decoder_with_bound(seq: u32, (heads, d): (u32, u32), capacity: u32, n: u32) -> Model {
    let mut m = Model::new();
    let shape = [1, seq, heads, d];
    let q = m.input(DType::F32, &shape);
    let [k, v] = [0; 2].map(|_| m.tensor(DType::F32, &shape));
    m.op("aten.neg.default", &[q, k]);
    m.op("aten.abs.default", &[q, v]);
    let at = m.input(DType::I64, &[1]);
    let (zero, one, pos, length) = (m.int(0), m.int(1), m.symint(), m.symint());
    m.op("et_vk.select_as_symint.default", &[at, zero, zero, pos]);
    m.op("sym_size.int", &[q, one, length]);
    let end = m.symint();
    m.op("add", &[pos, length, end]);
    let table = m.constant(&Data::random(DType::F32, &[capacity, d], (-1.0, 1.0), 1));
    let (turned_q, turned_k) = (m.tensor(DType::F32, &shape), m.tensor(DType::F32, &shape));
    let turned = m.list(&[turned_q, turned_k]);
    m.op("et_vk.apply_rotary_emb_hf.default", &[q, k, table, table, pos, turned]);
    let cache = Data::f32(&[1, capacity, heads, d], vec![0.0; (capacity * heads * d) as usize]);
    let (k_cache, v_cache) = (m.constant(&cache), m.constant(&cache));
    let (none, causal) = (m.null(), m.boolean(true));
    let attended = m.tensor(DType::F32, &shape);
    let args = [turned_q, turned_k, v, k_cache, v_cache, pos, one, none, none, causal, none, attended];
    m.op("sdpa_with_kv_cache.default", &args);
    let weights = q4::random(n, d, 8, 2);
    let (packed, scales, group) = (m.constant(&weights.packed), m.constant(&weights.scales), m.int(8));
    let out = m.tensor(DType::F32, &[1, seq, heads, n]);
    m.op("et_vk.linear_q4gsw.default", &[attended, packed, scales, group, none, out]);
    m.output(out);
    m.output(end);
    m
}

/// The decoder's inputs at `seq` rows and position `pos`.
pub fn decoder_inputs(seq: u32, pos: i64) -> Vec<Data> {
    vec![Data::random(DType::F32, &[1, seq, 2, 8], (-1.0, 1.0), 1), Data::i64(&[1], &[pos])]
}
