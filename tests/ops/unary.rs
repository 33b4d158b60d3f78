use executorch_webgpu::gpu::Profile;
use executorch_webgpu::graph::DType;
use executorch_webgpu::options::Options;

use crate::cases::{FLOATS, INTEGERS, SHAPES, SPECIAL, check_in_turn, hold, sizes};
use crate::common::writer::Entry;
use crate::common::{Data, Model, assert_close, tolerance};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] = &[
    exponentials_and_roots,
    trigonometry,
    activations,
    gelu,
    sign_and_rounding,
    bounds,
    powers,
    logic,
    doubles_are_held_as_singles,
];

type Args<'a> = &'a [Entry];

fn compare(op: &str, args: Args<'_>, x: &Data, out: DType, f: impl Fn(f64) -> f64 + Copy) {
    let want: Vec<f64> = x.values.iter().map(|&x| hold(out, f(x))).collect();
    Model::single(op, &[x], args, out, &x.dims)
        .check(&[x], |got| assert_close(&got[0], &x.dims, &want, tolerance(out, 1)));
}

/// Floats of every shape, the special numbers, and a model whose size changes.
fn floats(op: &str, args: Args<'_>, range: (f64, f64), f: impl Fn(f64) -> f64 + Copy) {
    for dtype in FLOATS {
        for dims in SHAPES {
            compare(op, args, &Data::random(dtype, dims, range, 7), dtype, f);
        }
        compare(op, args, &Data::new(dtype, &[16], SPECIAL.to_vec()), dtype, f);
    }
    let model = Model::single(op, &[&Data::random(DType::F32, &[9, 5], range, 1)], args, DType::F32, &[9, 5]);
    let calls = sizes(9).map(|n| [Data::random(DType::F32, &[n, 5], range, u64::from(n))]);
    check_in_turn(&model, &calls, |[x], got| {
        let want: Vec<f64> = x.values.iter().map(|&x| f(x)).collect();
        assert_close(&got[0], &x.dims, &want, tolerance(DType::F32, 1));
    });
}

fn integers(op: &str, args: Args<'_>, f: impl Fn(f64) -> f64 + Copy) {
    for dtype in INTEGERS {
        let low = if dtype == DType::U8 { 0.0 } else { -128.0 };
        for dims in SHAPES {
            compare(op, args, &Data::random(dtype, dims, (low, 127.0), 3), dtype, f);
        }
    }
}

/// Functions with a floating-point result also take integers.
fn integers_to_float(op: &str, args: Args<'_>, f: impl Fn(f64) -> f64 + Copy) {
    for dtype in INTEGERS {
        compare(op, args, &Data::random(dtype, &[3, 7], (1.0, 9.0), 5), DType::F32, f);
    }
}

/// Simpson's rule on the integral that defines it.
fn erf(x: f64) -> f64 {
    let n = 1000;
    let step = x / f64::from(n);
    if x.abs() > 6.0 {
        return x.signum();
    }
    let at = |i: i32| {
        (-(f64::from(i) * step).powi(2)).exp() * if i == 0 || i == n { 1.0 } else { f64::from(2 + 2 * (i % 2)) }
    };
    let sum: f64 = (0..=n).map(at).sum();
    sum * step / 3.0 * 2.0 / std::f64::consts::PI.sqrt()
}

fn none() -> Entry {
    Entry::Null
}

#[test]
fn exponentials_and_roots() {
    floats("aten.exp.default", &[], (-5.0, 5.0), f64::exp);
    floats("aten.sqrt.default", &[], (0.05, 12.0), f64::sqrt);
    floats("aten.rsqrt.default", &[], (0.5, 12.0), |x| 1.0 / x.sqrt());
    floats("aten.log10.default", &[], (0.01, 1000.0), f64::log10);
    integers_to_float("aten.exp.default", &[], f64::exp);
    integers_to_float("aten.rsqrt.default", &[], |x| 1.0 / x.sqrt());
    integers_to_float("aten.sqrt.default", &[], f64::sqrt);
    integers_to_float("aten.log10.default", &[], f64::log10);
}

#[test]
fn trigonometry() {
    floats("aten.sin.default", &[], (-6.0, 6.0), f64::sin);
    floats("aten.cos.default", &[], (-6.0, 6.0), f64::cos);
    floats("aten.sin.default", &[], (-2000.0, 2000.0), f64::sin);
    floats("aten.cos.default", &[], (-2000.0, 2000.0), f64::cos);
    floats("aten.tanh.default", &[], (-20.0, 20.0), f64::tanh);
    floats("aten.tanh.default", &[], (-0.01, 0.01), f64::tanh);
    integers_to_float("aten.sin.default", &[], f64::sin);
    integers_to_float("aten.cos.default", &[], f64::cos);
    integers_to_float("aten.tanh.default", &[], f64::tanh);
}

#[test]
fn activations() {
    floats("aten.sigmoid.default", &[], (-12.0, 12.0), |x| 1.0 / (1.0 + (-x).exp()));
    integers_to_float("aten.sigmoid.default", &[], |x| 1.0 / (1.0 + (-x).exp()));
    floats("aten.hardswish.default", &[], (-6.0, 6.0), |x| x * (x + 3.0).clamp(0.0, 6.0) / 6.0);
    floats("aten.leaky_relu.default", &[Entry::Double(0.2)], (-6.0, 6.0), |x| if x > 0.0 { x } else { 0.2 * x });
    floats("aten.leaky_relu.default", &[none()], (-6.0, 6.0), |x| if x > 0.0 { x } else { 0.01 * x });
    floats("aten.hardshrink.default", &[Entry::Double(0.5)], (-2.0, 2.0), |x| if x.abs() <= 0.5 { 0.0 } else { x });
}

#[test]
fn gelu() {
    let exact = |x: f64| x * 0.5 * (1.0 + erf(x / 2f64.sqrt()));
    floats("aten.gelu.default", &[Entry::Text("none".into())], (-6.0, 6.0), exact);
    let tangent = |x: f64| 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh());
    floats("aten.gelu.default", &[Entry::Text("tanh".into())], (-6.0, 6.0), tangent);
}

/// More elements than one dimension of workgroups reaches, then fewer, then more again.
#[test]
fn lengths_on_either_side_of_one_dimension_of_workgroups() {
    let width = 1 << 12;
    let bound = 65_536 * 64 * 4 / width + 3;
    let dims = |rows| vec![rows, width];
    let x = Data { dtype: DType::F32, dims: dims(bound), values: vec![] };
    let model = Model::single("aten.gelu.default", &[&x], &[Entry::Text("none".into())], DType::F32, &x.dims);
    for profile in [Profile::Full, Profile::Minimal] {
        let mut running = model.load_with(Options::default(), profile).unwrap();
        for rows in [bound, 5, bound] {
            let count = (rows * width) as usize;
            let at = |i: usize| (i % 1009) as f64 / 100.0 - 5.0;
            let x = Data { dtype: DType::F32, dims: dims(rows), values: (0..count).map(at).collect() };
            let got = running.run(&[&x]).unwrap().remove(0);
            assert_eq!((got.dims, got.values.len()), (dims(rows), count));
            for i in (0..count).step_by(4099).chain(count - 300..count) {
                let want = 0.5 * at(i) * (1.0 + erf(at(i) / 2f64.sqrt()));
                assert!((got.values[i] - want).abs() < 1e-4, "{i}: {} instead of {want}", got.values[i]);
            }
        }
    }
}

#[test]
fn sign_and_rounding() {
    floats("aten.abs.default", &[], (-6.0, 6.0), f64::abs);
    floats("aten.neg.default", &[], (-6.0, 6.0), |x| -x);
    floats("aten.round.default", &[], (-6.0, 6.0), f64::round_ties_even);
    integers("aten.abs.default", &[], f64::abs);
    integers("aten.neg.default", &[], |x| -x);
    integers("aten.round.default", &[], |x| x);
}

#[test]
fn bounds() {
    let relu = |x: f64| if x < 0.0 { 0.0 } else { x };
    floats("aten.relu.default", &[], (-3.0, 3.0), relu);
    integers("aten.relu.default", &[], relu);
    let limit = |low: f64, high: f64| move |x: f64| if x.is_nan() { x } else { x.max(low).min(high) };
    floats("aten.clamp.default", &[Entry::Double(-2.0), Entry::Int(3)], (-6.0, 6.0), limit(-2.0, 3.0));
    floats("aten.clamp.default", &[none(), Entry::Double(3.0)], (-6.0, 6.0), limit(f64::NEG_INFINITY, 3.0));
    let infinite = [Entry::Double(0.25), Entry::Double(f64::INFINITY)];
    floats("aten.clamp.default", &infinite, (-6.0, 6.0), limit(0.25, f64::INFINITY));
    floats("aten.clamp.default", &[Entry::Int(2), Entry::Int(-1)], (-6.0, 6.0), |x| if x.is_nan() { x } else { -1.0 });
    floats("aten.hardtanh.default", &[Entry::Int(-1), Entry::Double(1.0)], (-6.0, 6.0), limit(-1.0, 1.0));
    integers("aten.clamp.default", &[Entry::Int(3), Entry::Double(50.0)], |x| x.clamp(3.0, 50.0));
    integers("aten.clamp.default", &[Entry::Int(3), none()], |x| x.max(3.0));
    integers("aten.hardtanh.default", &[Entry::Int(0), Entry::Int(6)], |x| x.clamp(0.0, 6.0));
}

#[test]
fn powers() {
    floats("aten.pow.Tensor_Scalar", &[Entry::Double(2.0)], (-3.0, 3.0), |x| x * x);
    floats("aten.pow.Tensor_Scalar", &[Entry::Int(3)], (-3.0, 3.0), |x| x * x * x);
    floats("aten.pow.Tensor_Scalar", &[Entry::Double(0.5)], (0.1, 4.0), |x| x.powf(0.5));
    floats("aten.pow.Tensor_Scalar", &[Entry::Double(-1.5)], (0.1, 4.0), |x| x.powf(-1.5));
    floats("aten.pow.Tensor_Scalar", &[Entry::Int(-2)], (0.3, 4.0), |x| x.powi(-2));
    floats("aten.pow.Tensor_Scalar", &[Entry::Int(0)], (-4.0, 4.0), |_| 1.0);
    floats("aten.pow.Tensor_Scalar", &[Entry::Int(131)], (-1.1, 1.1), |x| x.powi(131));
    integers("aten.pow.Tensor_Scalar", &[Entry::Double(3.0)], |x| x * x * x);
}

#[test]
fn logic() {
    for dtype in crate::cases::ALL {
        for dims in SHAPES {
            let x = Data::random(dtype, dims, (0.0, 1.4), 9);
            compare("aten.logical_not.default", &[], &x, DType::Bool, |x| f64::from(x == 0.0));
        }
    }
    integers("aten.bitwise_not.default", &[], |x| f64::from(!(x as i32)));
    compare("aten.bitwise_not.default", &[], &Data::random(DType::Bool, &[7, 3], (0.0, 1.0), 9), DType::Bool, |x| {
        1.0 - x
    });
}

#[test]
fn a_floating_function_with_an_integer_result_is_refused() {
    let x = Data::random(DType::I32, &[4], (0.0, 9.0), 1);
    let text = Model::single("aten.exp.default", &[&x], &[], DType::I32, &[4]).load().err().unwrap().to_string();
    assert!(text.contains("aten.exp.default") && text.contains("int32"), "{text}");
}

#[test]
fn an_operand_of_another_type_is_refused_with_the_types_that_fit() {
    let x = Data::random(DType::Bool, &[4], (0.0, 1.0), 1);
    let text = Model::single("aten.abs.default", &[&x], &[], DType::Bool, &[4]).load().err().unwrap().to_string();
    assert!(text.contains("its operand is bool, expected one of float32"), "{text}");
    let x = Data::random(DType::I32, &[4], (0.0, 9.0), 1);
    let m = Model::single("aten.bitwise_not.default", &[&x], &[], DType::F32, &[4]);
    let text = m.load().err().unwrap().to_string();
    assert!(text.contains("the result is float32, expected an integer type"), "{text}");
}

#[test]
fn doubles_are_held_as_singles() {
    let x = Data::random(DType::F64, &[5, 3], (-3.0, 3.0), 1);
    compare(
        "aten.abs.default",
        &[],
        &Data { values: x.values.iter().map(|&v| f64::from(v as f32)).collect(), ..x },
        DType::F64,
        f64::abs,
    );
}
