use executorch_webgpu::graph::DType;

use crate::cases::{FLOATS, check_in_turn, sizes};
use crate::common::writer::Entry;
use crate::common::{Data, Model, assert_close, tolerance};

/// Normalised rows, their means and the inverse of their deviations.
fn reference(x: &Data, width: usize, factors: [Option<&Data>; 2], eps: f64, center: bool) -> [Vec<f64>; 3] {
    let [mut out, mut means, mut scales] = [Vec::new(), Vec::new(), Vec::new()];
    let factor = |n: usize, i: usize, neutral: f64| factors[n].map_or(neutral, |f| f.values[i]);
    for row in x.values.chunks(width) {
        let mean = if center { row.iter().sum::<f64>() / width as f64 } else { 0.0 };
        let scale = 1.0 / (row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width as f64 + eps).sqrt();
        out.extend(row.iter().enumerate().map(|(i, x)| (x - mean) * scale * factor(0, i, 1.0) + factor(1, i, 0.0)));
        means.push(mean);
        scales.push(scale);
    }
    [out, means, scales]
}

fn rms(dtype: DType, dims: &[u32], eps: Entry, value: f64) {
    let width = *dims.last().unwrap();
    let x = Data::random(dtype, dims, (-2.0, 2.0), 1);
    let w = Data::random(dtype, &[width], (-1.5, 1.5), 2);
    let [want, ..] = reference(&x, width as usize, [Some(&w), None], value, false);
    Model::single("et_vk.rms_norm.default", &[&x, &w], &[eps], dtype, dims)
        .check(&[&x, &w], |got| assert_close(&got[0], dims, &want, tolerance(dtype, width as usize)));
}

#[test]
fn rms_norms_of_every_width() {
    for width in [1, 3, 4, 7, 32, 100, 130, 256, 257, 896, 1031, 2048, 8192] {
        for dtype in FLOATS {
            rms(dtype, &[1, 2, width], Entry::Double(1e-6), 1e-6);
        }
    }
    rms(DType::F32, &[2, 5, 7, 12], Entry::Int(1), 1.0);
    rms(DType::F32, &[6], Entry::Null, f64::from(f32::EPSILON));
    rms(DType::F32, &[0, 6], Entry::Null, 0.0);
}

#[test]
fn more_rows_than_one_dimension_of_workgroups() {
    rms(DType::F32, &[65537, 3], Entry::Double(1e-5), 1e-5);
}

#[test]
fn rms_norms_of_changing_tensors() {
    let make = |n: u32| {
        [
            Data::random(DType::F32, &[1, n, 40], (-2.0, 2.0), u64::from(n)),
            Data::random(DType::F32, &[40], (0.5, 1.5), 2),
        ]
    };
    let [x, w] = &make(9);
    let m = Model::single("et_vk.rms_norm.default", &[x, w], &[Entry::Double(1e-5)], DType::F32, &[1, 9, 40]);
    check_in_turn(&m, &sizes(9).map(make), |[x, w], got| {
        let [want, ..] = reference(x, 40, [Some(w), None], 1e-5, false);
        assert_close(&got[0], &x.dims, &want, tolerance(DType::F32, 40));
    });
}

/// Norm after norm, each with a residual and a product: `h = h + norm(h) * h`.
#[test]
fn chains_of_changing_tensors() {
    const DEPTH: usize = 3;
    let w = Data::random(DType::F32, &[64], (0.5, 1.5), 2);
    let dims = [1, 128, 64];
    let mut m = Model::new();
    let (weight, eps, one) = (m.constant(&w), m.double(1e-6), m.int(1));
    let mut h = m.input(DType::F32, &dims);
    for _ in 0..DEPTH {
        let [normed, gated, sum] = [(); 3].map(|()| m.tensor(DType::F32, &dims));
        m.op("et_vk.rms_norm.default", &[h, weight, eps, normed]);
        m.op("aten.mul.Tensor", &[normed, h, gated]);
        m.op("aten.add.Tensor", &[h, gated, one, sum]);
        h = sum;
    }
    m.output(h);
    let make = |n: u32| [Data::random(DType::F32, &[1, n, 64], (-1.0, 1.0), u64::from(n))];
    check_in_turn(&m, &[128, 64, 8, 1, 16, 128].map(make), |[x], got| {
        let mut h = x.clone();
        for _ in 0..DEPTH {
            let [normed, ..] = reference(&h, 64, [Some(&w), None], 1e-6, false);
            h.values.iter_mut().zip(&normed).for_each(|(h, n)| *h += n * *h);
        }
        assert_close(&got[0], &x.dims, &h.values, (1e-4, 1e-4));
    });
}

fn layer(dtype: DType, dims: &[u32], normalized: usize, affine: [bool; 2]) {
    let kept = dims.len() - normalized;
    let width: u32 = dims[kept..].iter().product();
    let x = Data::random(dtype, dims, (3.0, 7.0), 1);
    let factors =
        [Data::random(dtype, &dims[kept..], (-1.5, 1.5), 2), Data::random(dtype, &dims[kept..], (-1.0, 1.0), 3)];
    let given: Vec<Option<&Data>> = factors.iter().zip(affine).map(|(f, on)| on.then_some(f)).collect();
    let line: Vec<u32> = dims.iter().enumerate().map(|(axis, &n)| if axis < kept { n } else { 1 }).collect();
    let mut m = Model::new();
    let mut args = vec![m.input(dtype, dims)];
    args.push(m.ints(&dims[kept..].iter().map(|&n| i64::from(n)).collect::<Vec<_>>()));
    let inputs: Vec<&Data> = std::iter::once(&x).chain(given.iter().flatten().copied()).collect();
    for factor in &given {
        args.push(factor.map_or(m.null(), |f| m.input(dtype, &f.dims)));
    }
    args.push(m.double(1e-5));
    let outputs = [dims, &line, &line].map(|dims| m.tensor(dtype, dims));
    args.push(m.list(&outputs));
    m.op("aten.native_layer_norm.default", &args);
    outputs.into_iter().for_each(|id| m.output(id));
    let want = reference(&x, width as usize, [given[0], given[1]], 1e-5, true);
    m.check(&inputs, |got| {
        for (index, dims) in [dims, &line, &line].into_iter().enumerate() {
            assert_close(&got[index], dims, &want[index], tolerance(dtype, width as usize));
        }
    });
}

#[test]
fn layer_norms() {
    for dtype in FLOATS {
        layer(dtype, &[4, 128], 1, [true, true]);
        layer(dtype, &[4, 128], 1, [false, false]);
        layer(dtype, &[3, 5, 7], 2, [true, false]);
        layer(dtype, &[2, 131], 1, [false, true]);
        layer(dtype, &[1, 16, 768], 1, [true, true]);
    }
}

#[test]
fn a_weight_of_another_width_is_refused() {
    let (x, w) = (Data::random(DType::F32, &[2, 8], (0.0, 1.0), 1), Data::random(DType::F32, &[4], (0.0, 1.0), 1));
    let m = Model::single("et_vk.rms_norm.default", &[&x, &w], &[Entry::Null], DType::F32, &[2, 8]);
    let text = m.load().err().unwrap().to_string();
    assert!(text.contains("weight is float32 [4], the rows have 8"), "{text}");
}
