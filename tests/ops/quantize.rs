use executorch_webgpu::graph::DType;

use crate::cases::{FLOATS, SHAPES, check_in_turn, coordinates, flat, sizes};
use crate::common::writer::Entry;
use crate::common::{Data, Model, assert_close, tolerance};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] =
    &[channels_rows_and_blocks_have_scales_of_their_own, a_tensor_has_one_scale, the_scale_of_a_tensor_may_be_a_tensor];

/// Which scale an element has: the length of a block along each dimension.
fn block_of(i: usize, dims: &[u32], block: &[u32]) -> usize {
    let at: Vec<usize> = coordinates(i, dims).iter().zip(block).map(|(&c, &b)| c / b as usize).collect();
    flat(&at, &dims.iter().zip(block).map(|(d, b)| (d / b).max(1)).collect::<Vec<_>>())
}

fn bounds(dtype: DType) -> [f64; 2] {
    if dtype == DType::U8 { [0.0, 255.0] } else { [-128.0, 127.0] }
}

/// In f32, as PyTorch computes; `late` rounds after the zero point is added.
fn integer(x: f64, inverse: f32, zero: f64, [low, high]: [f64; 2], late: bool) -> f64 {
    let (y, zero) = (x as f32 * inverse, zero as f32);
    let q = if late { (y + zero).round_ties_even() } else { y.round_ties_even() + zero };
    f64::from(q.clamp(low as f32, high as f32))
}

struct Case {
    op: &'static str,
    dims: Vec<u32>,
    block: Vec<u32>,
    /// Arguments between the operand and scale, and between zero point and bounds.
    around: [Vec<Entry>; 2],
}

fn cases() -> Vec<Case> {
    let case =
        |op, dims: &[u32], block: &[u32], around| Case { op, dims: dims.to_vec(), block: block.to_vec(), around };
    let none = || [vec![], vec![]];
    let axis = |n| [vec![], vec![Entry::Int(n)]];
    let blocks = |b: &[i64]| [vec![Entry::Ints(b.to_vec())], vec![Entry::Null]];
    vec![
        case("quantized_decomposed.{}_per_channel.default", &[5, 7, 11], &[1, 7, 11], axis(0)),
        case("quantized_decomposed.{}_per_channel.default", &[5, 7, 11], &[5, 1, 11], axis(1)),
        case("quantized_decomposed.{}_per_channel.default", &[5, 7, 12], &[5, 7, 1], axis(-1)),
        case("quantized_decomposed.{}_per_channel.default", &[257], &[1], axis(0)),
        case("quantized_decomposed.{}_per_token.default", &[1, 37, 41], &[1, 1, 41], none()),
        case("quantized_decomposed.{}_per_token.default", &[3, 64], &[1, 64], none()),
        case("torchao.{}_affine.default", &[7, 64], &[1, 32], blocks(&[1, 32])),
        case("torchao.{}_affine.default", &[6, 10, 9], &[2, 10, 3], blocks(&[2, 10, 3])),
        case("torchao.{}_affine.default", &[11, 13], &[1, 13], blocks(&[1, 13])),
        case("torchao.{}_affine.default", &[4, 3], &[4, 3], blocks(&[4, 3])),
    ]
}

impl Case {
    fn parameters(&self, dtype: DType) -> (Data, Data) {
        let count: u32 = self.dims.iter().zip(&self.block).map(|(d, b)| d / b).product();
        let zeros = if dtype == DType::U8 { (90.0, 160.0) } else { (-20.0, 20.0) };
        (Data::random(DType::F32, &[count], (0.01, 0.1), 5), Data::random(DType::I32, &[count], zeros, 6))
    }

    /// The model of one direction, its operator's arguments after the operand being those of this case.
    fn model(&self, way: &str, x: &Data, [scale, zero]: [&Data; 2], after: &[Entry], out: DType) -> Model {
        let mut m = Model::new();
        let mut args = vec![m.input(x.dtype, &x.dims)];
        args.extend(self.around[0].iter().map(|e| m.add(e.clone())).collect::<Vec<_>>());
        args.extend([m.input(scale.dtype, &scale.dims), m.input(zero.dtype, &zero.dims)]);
        args.extend(self.around[1].iter().chain(after).map(|e| m.add(e.clone())).collect::<Vec<_>>());
        let y = m.tensor(out, &x.dims);
        args.push(y);
        m.op(&self.op.replace("{}", way), &args);
        m.output(y);
        m
    }
}

#[test]
fn channels_rows_and_blocks_have_scales_of_their_own() {
    for case in cases() {
        for dtype in [DType::I8, DType::U8, DType::I32] {
            let (scale, zero) = case.parameters(dtype);
            let of = |i| block_of(i, &case.dims, &case.block);
            let range = bounds(dtype);
            for float in [DType::F32, DType::F16] {
                let x = Data::random(float, &case.dims, (-6.0, 6.0), 7);
                let late = case.op.contains("token");
                let number = |(i, &x): (usize, &f64)| {
                    integer(x, 1.0 / scale.values[of(i)] as f32, zero.values[of(i)], range, late)
                };
                let want: Vec<f64> = x.values.iter().enumerate().map(number).collect();
                let after = [range[0], range[1]].map(|b| Entry::Int(b as i64));
                let after = [after[0].clone(), after[1].clone()].into_iter().chain((0..1).map(|_| Entry::Null));
                let after: Vec<Entry> =
                    if case.op.contains("affine") { after.take(2).collect() } else { after.collect() };
                case.model("quantize", &x, [&scale, &zero], &after, dtype)
                    .check(&[&x, &scale, &zero], |got| assert_close(&got[0], &case.dims, &want, (0.0, 0.0)));
                let q = Data::random(dtype, &case.dims, (range[0], range[1]), 8);
                let number = |(i, &q): (usize, &f64)| (q - zero.values[of(i)]) * scale.values[of(i)];
                let want: Vec<f64> = q.values.iter().enumerate().map(number).collect();
                let after = [after, vec![Entry::Null]].concat();
                case.model("dequantize", &q, [&scale, &zero], &after, float)
                    .check(&[&q, &scale, &zero], |got| assert_close(&got[0], &case.dims, &want, tolerance(float, 1)));
            }
        }
    }
}

fn per_tensor(x: &Data, scale: f64, zero: i64, [low, high]: [f64; 2], out: DType) -> Model {
    let entries =
        [Entry::Double(scale), Entry::Int(zero), Entry::Int(low as i64), Entry::Int(high as i64), Entry::Null];
    Model::single("quantized_decomposed.quantize_per_tensor.default", &[x], &entries, out, &x.dims)
}

#[test]
fn a_tensor_has_one_scale() {
    for dims in SHAPES {
        for (dtype, scale, zero) in
            [(DType::I8, 0.05, 0), (DType::I8, 0.02, -13), (DType::U8, 0.1, 128), (DType::I32, 0.1, 5)]
        {
            let range = bounds(dtype);
            for float in FLOATS {
                let x = Data::random(float, dims, (-9.0, 9.0), 1);
                let inverse = (1.0 / scale) as f32;
                let want: Vec<f64> = x.values.iter().map(|&x| integer(x, inverse, zero as f64, range, false)).collect();
                per_tensor(&x, scale, zero, range, dtype)
                    .check(&[&x], |got| assert_close(&got[0], dims, &want, (0.0, 0.0)));
            }
            let q = Data::random(dtype, dims, (range[0], range[1]), 2);
            let back: Vec<f64> = q.values.iter().map(|q| (q - zero as f64) * scale).collect();
            let entries =
                [Entry::Double(scale), Entry::Int(zero), Entry::Int(0), Entry::Int(0), Entry::Null, Entry::Null];
            Model::single("quantized_decomposed.dequantize_per_tensor.default", &[&q], &entries, DType::F32, dims)
                .check(&[&q], |got| assert_close(&got[0], dims, &back, tolerance(DType::F32, 1)));
        }
    }
}

#[test]
fn halves_go_to_even_and_bounds_hold() {
    let x = Data::f32(&[9], vec![0.5, 1.5, 2.5, -0.5, -1.5, 1e9, -1e9, f64::INFINITY, 3.49]);
    let want = [0.0, 2.0, 2.0, 0.0, -2.0, 7.0, -8.0, 7.0, 3.0];
    per_tensor(&x, 1.0, 0, [-8.0, 7.0], DType::I8).check(&[&x], |got| assert_close(&got[0], &[9], &want, (0.0, 0.0)));
    // The exporter stores 1 and 1.0 once: the scale comes as an integer.
    let entries = [Entry::Int(1), Entry::Double(0.0), Entry::Double(-8.0), Entry::Int(7), Entry::Null];
    Model::single("quantized_decomposed.quantize_per_tensor.default", &[&x], &entries, DType::I8, &[9])
        .check(&[&x], |got| assert_close(&got[0], &[9], &want, (0.0, 0.0)));
}

#[test]
fn the_scale_of_a_tensor_may_be_a_tensor() {
    let (scale, zero) = (Data::new(DType::F64, &[1], vec![0.0625]), Data::i64(&[1], &[3]));
    for (float, integers) in [(DType::F32, DType::I8), (DType::F16, DType::U8), (DType::F32, DType::I32)] {
        let range = bounds(integers);
        let x = Data::random(float, &[7, 5], (-9.0, 9.0), 3);
        let mut m = Model::new();
        let args = [m.input(float, &x.dims), m.input(DType::F64, &[1]), m.input(DType::I64, &[1])];
        let (low, high, none) = (m.int(range[0] as i64), m.int(range[1] as i64), m.null());
        let (q, y) = (m.tensor(integers, &x.dims), m.tensor(float, &x.dims));
        m.op("quantized_decomposed.quantize_per_tensor.tensor", &[args[0], args[1], args[2], low, high, none, q]);
        m.op("quantized_decomposed.dequantize_per_tensor.tensor", &[q, args[1], args[2], low, high, none, none, y]);
        m.output(q);
        m.output(y);
        let want: Vec<f64> = x.values.iter().map(|&x| integer(x, 16.0, 3.0, range, false)).collect();
        let back: Vec<f64> = want.iter().map(|q| (q - 3.0) * 0.0625).collect();
        m.check(&[&x, &scale, &zero], |got| {
            assert_close(&got[0], &x.dims, &want, (0.0, 0.0));
            assert_close(&got[1], &x.dims, &back, (0.0, 0.0));
        });
    }
}

#[test]
fn rows_come_and_go() {
    let case = Case {
        op: "quantized_decomposed.{}_per_token.default",
        dims: vec![13, 7],
        block: vec![1, 7],
        around: [vec![], vec![]],
    };
    let make = |n: u32| {
        let scale = Data::random(DType::F32, &[n, 1], (0.01, 0.1), 1);
        [Data::random(DType::F32, &[n, 7], (-6.0, 6.0), 2), scale, Data::random(DType::I8, &[n, 1], (-9.0, 9.0), 3)]
    };
    let [x, scale, zero] = make(13);
    let after = [Entry::Int(-128), Entry::Int(127), Entry::Null];
    let m = case.model("quantize", &x, [&scale, &zero], &after, DType::I8);
    check_in_turn(&m, &sizes(13).map(make), |[x, scale, zero], got| {
        let number = |(i, &x): (usize, &f64)| {
            integer(x, 1.0 / scale.values[i / 7] as f32, zero.values[i / 7], bounds(DType::I8), true)
        };
        let want: Vec<f64> = x.values.iter().enumerate().map(number).collect();
        assert_close(&got[0], &x.dims, &want, (0.0, 0.0));
    });
}

#[test]
fn scales_that_do_not_fit_are_refused() {
    for (scales, blocks) in [(3, &[1, 32][..]), (14, &[1, 24]), (14, &[0, 32]), (1, &[]), (14, &[32])] {
        let case = Case {
            op: "torchao.{}_affine.default",
            dims: vec![7, 64],
            block: vec![1, 32],
            around: [vec![Entry::Ints(blocks.to_vec())], vec![Entry::Null]],
        };
        let x = Data::random(DType::F32, &[7, 64], (-1.0, 1.0), 1);
        let (s, z) =
            (Data::f32(&[scales], vec![0.1; scales as usize]), Data::i64(&[scales], &vec![0; scales as usize]));
        assert!(case.model("quantize", &x, [&s, &z], &[Entry::Null, Entry::Null], DType::I8).load().is_err());
    }
    let x = Data::random(DType::F32, &[3], (-1.0, 1.0), 1);
    assert!(per_tensor(&x, 0.1, 0, bounds(DType::I8), DType::F32).load().is_err(), "a result in f32");
}

#[test]
fn nothing_in_blocks_is_nothing() {
    let (x, scale) = (Data::f32(&[0, 64], vec![]), Data::f32(&[0, 1], vec![]));
    let mut m = Model::new();
    let x_id = m.input(x.dtype, &[0, 64]);
    let block = m.ints(&[4, 64]);
    let (s, z) = (m.input(DType::F32, &[0, 1]), m.null());
    let rest: Vec<_> = [Entry::Null, Entry::Int(-8), Entry::Int(7)].into_iter().map(|e| m.add(e)).collect();
    let out = m.tensor(DType::I8, &[0, 64]);
    m.op("torchao.quantize_affine.default", &[&[x_id, block, s, z][..], &rest, &[out]].concat());
    m.output(out);
    m.check(&[&x, &scale], |got| assert_close(&got[0], &[0, 64], &[], (0.0, 0.0)));
}
