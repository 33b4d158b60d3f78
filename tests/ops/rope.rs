use executorch_webgpu::graph::DType;

use crate::cases::{FLOATS, check_in_turn};
use crate::common::{Data, Model, assert_close, tolerance};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] = &[neighbours_rotate, halves_rotate_from_any_position, one_table_of_pairs];

fn query_key(
    op: &str,
    (s, hq, hk, d): (u32, u32, u32, u32),
    table: [u32; 2],
    pos: Option<i64>,
    angle: impl Fn(usize, &Data, &Data, usize, usize) -> f64,
) {
    for dtype in FLOATS {
        let q = Data::random(dtype, &[1, s, hq, d], (-1.0, 1.0), 1);
        let k = Data::random(dtype, &[1, s, hk, d], (-1.0, 1.0), 2);
        let cos = Data::random(dtype, &table, (-1.0, 1.0), 3);
        let sin = Data::random(dtype, &table, (-1.0, 1.0), 4);
        let mut m = Model::new();
        let ids = [&q, &k, &cos, &sin].map(|x| m.input(x.dtype, &x.dims));
        let (a, b) = (m.tensor(dtype, &q.dims), m.tensor(dtype, &k.dims));
        let outputs = m.list(&[a, b]);
        let mut args = ids.to_vec();
        args.extend(pos.map(|pos| m.int(pos)));
        args.push(outputs);
        m.op(op, &args);
        m.output(a);
        m.output(b);
        let rotated = |x: &Data, heads: u32| -> Vec<f64> {
            (0..x.values.len())
                .map(|i| {
                    let row = i / (heads * d) as usize + pos.unwrap_or(0) as usize;
                    let _ = row;
                    angle(i, x, &cos, row, 0) + angle(i, x, &sin, row, 1)
                })
                .collect()
        };
        let (want_q, want_k) = (rotated(&q, hq), rotated(&k, hk));
        m.check(&[&q, &k, &cos, &sin], |out| {
            assert_close(&out[0], &q.dims, &want_q, tolerance(dtype, 2));
            assert_close(&out[1], &k.dims, &want_k, tolerance(dtype, 2));
        });
    }
}

#[test]
fn neighbours_rotate() {
    for shape in [(5, 8, 2, 64), (1, 32, 8, 64), (3, 1, 1, 2), (7, 3, 1, 6)] {
        let d = shape.3 as usize;
        query_key("et_vk.apply_rotary_emb.default", shape, [shape.0, shape.3 / 2], None, |i, x, table, row, part| {
            let column = i % d;
            let t = table.values[row * d / 2 + column / 2];
            match (part, column % 2) {
                (0, _) => x.values[i] * t,
                (_, 0) => -x.values[i + 1] * t,
                _ => x.values[i - 1] * t,
            }
        });
    }
}

#[test]
fn halves_rotate_from_any_position() {
    for (shape, rotary, pos) in [((5, 8, 2, 64), 64, 0), ((1, 16, 8, 128), 128, 15), ((3, 2, 1, 12), 8, 7)] {
        let d = shape.3 as usize;
        query_key("et_vk.apply_rotary_emb_hf.default", shape, [24, rotary], Some(pos), |i, x, table, row, part| {
            let (column, half) = (i % d, rotary as usize / 2);
            if column >= rotary as usize {
                return if part == 0 { x.values[i] } else { 0.0 };
            }
            let t = table.values[row * rotary as usize + column];
            match (part, column < half) {
                (0, _) => x.values[i] * t,
                (_, true) => -x.values[i + half] * t,
                _ => x.values[i - half] * t,
            }
        });
    }
}

/// `[1, S, heads, D]` rotated by the rows of `cos` and `sin` from `start` on, at pairs of dimensions that `partner` tells:
/// of a dimension, the other one, the column of the tables and the sign of the sine.
fn turned(
    x: &Data,
    [cos, sin]: [&Data; 2],
    start: usize,
    partner: impl Fn(usize, usize) -> (usize, usize, f64),
) -> Vec<f64> {
    let (heads, d, width) = (x.dims[2] as usize, x.dims[3] as usize, cos.dims[1] as usize);
    let at = |i: usize| {
        let (row, (other, column, sign)) = (start + i / d / heads, partner(i % d, d));
        let [cos, sin] = [cos, sin].map(|table| table.values[row * width + column]);
        x.values[i] * cos + sign * x.values[i / d * d + other] * sin
    };
    (0..x.values.len()).map(at).collect()
}

fn heads(seq: u32, heads: u32, seed: u64) -> Data {
    Data::random(DType::F32, &[1, seq, heads, 64], (-1.0, 1.0), seed + u64::from(seq))
}

#[test]
fn pairs_of_changing_sequences() {
    let make = |n: u32| {
        let table = |seed| Data::random(DType::F32, &[n, 32], (-1.0, 1.0), seed + u64::from(n));
        [heads(n, 8, 1), heads(n, 2, 2), table(3), table(4)]
    };
    let mut m = Model::new();
    let ids = make(16).map(|x| m.input(x.dtype, &x.dims));
    let out = [8, 2].map(|heads| m.tensor(DType::F32, &[1, 16, heads, 64]));
    let list = m.list(&out);
    m.op("et_vk.apply_rotary_emb.default", &[ids[0], ids[1], ids[2], ids[3], list]);
    out.into_iter().for_each(|id| m.output(id));
    let partner = |i: usize, _: usize| (i ^ 1, i / 2, if i.is_multiple_of(2) { -1.0 } else { 1.0 });
    check_in_turn(&m, &[16, 8, 1, 16].map(make), |[q, k, cos, sin], got| {
        for (x, got) in [q, k].into_iter().zip(got) {
            assert_close(got, &x.dims, &turned(x, [cos, sin], 0, partner), tolerance(DType::F32, 2));
        }
    });
}

#[test]
fn halves_of_changing_sequences_at_positions_that_calls_give() {
    let tables = [3, 4].map(|seed| Data::random(DType::F32, &[24, 64], (-1.0, 1.0), seed));
    let mut m = Model::new();
    let [q, k] = [8, 2].map(|heads| m.input(DType::F32, &[1, 16, heads, 64]));
    let (at, zero, pos) = (m.input(DType::I64, &[1]), m.int(0), m.symint());
    m.op("et_vk.select_as_symint.default", &[at, zero, zero, pos]);
    let [cos, sin] = tables.each_ref().map(|table| m.constant(table));
    let out = [8, 2].map(|heads| m.tensor(DType::F32, &[1, 16, heads, 64]));
    let list = m.list(&out);
    m.op("et_vk.apply_rotary_emb_hf.default", &[q, k, cos, sin, pos, list]);
    out.into_iter().for_each(|id| m.output(id));
    let calls: Vec<(u32, i64)> = [(16, 0), (5, 7), (1, 15), (16, 0)]
        .into_iter()
        .chain([1, 7, 16].into_iter().flat_map(|seq| (0..=24 - i64::from(seq)).map(move |pos| (seq, pos))))
        .collect();
    let calls: Vec<[Data; 3]> =
        calls.into_iter().map(|(seq, pos)| [heads(seq, 8, 1), heads(seq, 2, 2), Data::i64(&[1], &[pos])]).collect();
    let partner = |i: usize, d: usize| ((i + d / 2) % d, i, if i < d / 2 { -1.0 } else { 1.0 });
    check_in_turn(&m, &calls, |[q, k, at], got| {
        for (x, got) in [q, k].into_iter().zip(got) {
            let want = turned(x, tables.each_ref(), at.values[0] as usize, partner);
            assert_close(got, &x.dims, &want, tolerance(DType::F32, 2));
        }
    });
}

#[test]
fn a_start_outside_the_tables_is_refused() {
    let mut m = Model::new();
    let (q, k) = (m.input(DType::F32, &[1, 4, 1, 8]), m.input(DType::F32, &[1, 4, 1, 8]));
    let (cos, sin) = (m.input(DType::F32, &[6, 8]), m.input(DType::F32, &[6, 8]));
    let (a, b, pos) = (m.tensor(DType::F32, &[1, 4, 1, 8]), m.tensor(DType::F32, &[1, 4, 1, 8]), m.int(3));
    let outputs = m.list(&[a, b]);
    m.op("et_vk.apply_rotary_emb_hf.default", &[q, k, cos, sin, pos, outputs]);
    m.output(a);
    let text = m.load().err().unwrap().to_string();
    assert!(text.contains("3 with length 4 is outside 0..6"), "{text}");
}

#[test]
fn tables_of_different_sizes_are_refused() {
    let mut m = Model::new();
    let (q, k) = (m.input(DType::F32, &[1, 4, 1, 8]), m.input(DType::F32, &[1, 16, 1, 8]));
    let (cos, short, sin) =
        (m.input(DType::F32, &[16, 8]), m.input(DType::F32, &[4, 8]), m.input(DType::F32, &[16, 8]));
    let (a, b, pos) = (m.tensor(DType::F32, &[1, 4, 1, 8]), m.tensor(DType::F32, &[1, 16, 1, 8]), m.int(12));
    let outputs = m.list(&[a, b]);
    m.output(a);
    let mut uneven = m.clone();
    uneven.op("et_vk.apply_rotary_emb_hf.default", &[q, k, cos, short, pos, outputs]);
    assert!(uneven.load().err().unwrap().to_string().contains("the tables are"));
    m.op("et_vk.apply_rotary_emb_hf.default", &[q, k, cos, sin, pos, outputs]);
    assert!(m.load().err().unwrap().to_string().contains("12 with length 16"));
}

#[test]
fn one_table_of_pairs() {
    let sizes = [(1u32, 4u32, 8u32), (2, 3, 8), (1, 5, 4), (1, 2, 16)];
    for ((b, n, c), dtype) in sizes.into_iter().zip(FLOATS.into_iter().cycle()) {
        let x = Data::random(dtype, &[b, n, c], (-1.0, 1.0), 5);
        let freqs = Data::random(dtype, &[n, c], (-1.0, 1.0), 6);
        let want: Vec<f64> = (0..x.values.len())
            .map(|i| {
                let (row, column) = (i / c as usize % n as usize, i % c as usize);
                let at = |column: usize| freqs.values[row * c as usize + column];
                let (cos, sin) = (at(column & !1), at(column | 1));
                if column % 2 == 0 {
                    x.values[i] * cos - x.values[i + 1] * sin
                } else {
                    x.values[i] * cos + x.values[i - 1] * sin
                }
            })
            .collect();
        Model::single("et_vk.apply_rotary_emb_interleaved.default", &[&x, &freqs], &[], dtype, &x.dims)
            .check(&[&x, &freqs], |out| assert_close(&out[0], &x.dims, &want, tolerance(dtype, 2)));
    }
}
