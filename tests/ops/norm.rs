use executorch_webgpu::graph::DType;

use crate::cases::{FLOATS, check_in_turn, sizes};
use crate::common::writer::Entry;
use crate::common::{Data, Model, assert_close, tolerance};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] = &[rms_norms_of_every_width, layer_norms, group_norms, batch_norms];

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
fn layer_norms_over_several_dimensions() {
    for dtype in FLOATS {
        layer(dtype, &[2, 3, 4, 5], 4, [true, true]);
        layer(dtype, &[2, 3, 1, 7], 3, [true, true]);
        layer(dtype, &[5, 1, 1], 1, [true, true]);
    }
}

/// `aten.native_group_norm.default` of a picture of at most this shape.
fn group_model(dtype: DType, dims: &[u32], groups: u32, [weight, bias]: [Option<&Data>; 2]) -> Model {
    let mut m = Model::new();
    let mut args = vec![m.input(dtype, dims)];
    for factor in [weight, bias] {
        args.push(factor.map(|f| m.constant(f)).unwrap_or_else(|| m.null()));
    }
    let pixels: u32 = dims[2..].iter().product();
    args.extend([dims[0], dims[1], pixels, groups].map(|n| m.int(i64::from(n))));
    args.push(m.double(1e-5));
    let outputs = [dims, &[dims[0], groups], &[dims[0], groups]].map(|dims| m.tensor(dtype, dims));
    args.push(m.list(&outputs));
    m.op("aten.native_group_norm.default", &args);
    outputs.into_iter().for_each(|id| m.output(id));
    m
}

/// Normalised groups, scaled and shifted by channel.
fn group_reference(x: &Data, groups: u32, [weight, bias]: [Option<&Data>; 2]) -> [Vec<f64>; 3] {
    let pixels = x.dims[2..].iter().product::<u32>() as usize;
    let width = x.dims[1] as usize / groups as usize * pixels;
    let [mut out, means, scales] = reference(x, width, [None, None], 1e-5, true);
    for (i, y) in out.iter_mut().enumerate() {
        let channel = i / pixels % x.dims[1] as usize;
        *y = *y * weight.map_or(1.0, |w| w.values[channel]) + bias.map_or(0.0, |b| b.values[channel]);
    }
    [out, means, scales]
}

#[test]
fn group_norms() {
    for dtype in FLOATS {
        for (dims, groups) in [
            (&[2, 4, 3, 5][..], 2),
            (&[1, 6, 2, 2], 3),
            (&[1, 4, 3, 3], 1),
            (&[3, 8, 4, 16], 8),
            (&[2, 12, 37], 4),
            (&[5, 6], 2),
            (&[1, 32, 17, 19], 2),
        ] {
            for affine in [[true, true], [true, false], [false, true], [false, false]] {
                let x = Data::random(dtype, dims, (1.0, 4.0), 1);
                let factors = [2, 3].map(|seed| Data::random(dtype, &[dims[1]], (-1.5, 1.5), seed));
                let given = [affine[0].then_some(&factors[0]), affine[1].then_some(&factors[1])];
                let want = group_reference(&x, groups, given);
                group_model(dtype, dims, groups, given).check(&[&x], |got| {
                    let line = [dims[0], groups];
                    for (index, dims) in [dims, &line, &line].into_iter().enumerate() {
                        let (abs, rel) = tolerance(dtype, want[0].len());
                        assert_close(&got[index], dims, &want[index], (2.0 * abs, rel));
                    }
                });
            }
        }
    }
}

#[test]
fn group_norms_of_changing_pictures() {
    let factors = [2, 3].map(|seed| Data::random(DType::F32, &[6], (-1.5, 1.5), seed));
    let given = [Some(&factors[0]), Some(&factors[1])];
    let make = |(images, rows, columns): (u32, u32, u32)| {
        [Data::random(DType::F32, &[images, 6, rows, columns], (-1.0, 1.0), u64::from(rows))]
    };
    let sizes = [(3, 8, 9), (1, 8, 9), (3, 7, 5), (2, 2, 2), (0, 1, 1), (3, 8, 9)];
    check_in_turn(&group_model(DType::F32, &[3, 6, 8, 9], 3, given), &sizes.map(make), |[x], got| {
        let want = group_reference(x, 3, given);
        assert_close(&got[0], &x.dims, &want[0], tolerance(DType::F32, 144));
        assert_close(&got[2], &[x.dims[0], 3], &want[2], tolerance(DType::F32, 144));
    });
}

/// `aten._native_batch_norm_legit_no_training.default` with constant statistics.
fn batch_model(dtype: DType, dims: &[u32], [weight, bias]: [Option<&Data>; 2], statistics: &[Data; 2]) -> Model {
    let mut m = Model::new();
    let mut args = vec![m.input(dtype, dims)];
    for factor in [weight, bias] {
        args.push(factor.map(|f| m.constant(f)).unwrap_or_else(|| m.null()));
    }
    args.extend([&statistics[0], &statistics[1]].map(|s| m.constant(s)));
    args.extend([m.double(0.1), m.double(1e-3)]);
    let outputs = [dims, &[0], &[0]].map(|dims| m.tensor(dtype, dims));
    args.push(m.list(&outputs));
    m.op("aten._native_batch_norm_legit_no_training.default", &args);
    outputs.into_iter().for_each(|id| m.output(id));
    m
}

fn batch_reference(x: &Data, [weight, bias]: [Option<&Data>; 2], [mean, variance]: &[Data; 2]) -> Vec<f64> {
    let pixels = x.dims[2..].iter().product::<u32>() as usize;
    let one = |(i, &x): (usize, &f64)| {
        let c = i / pixels % mean.values.len();
        let normed = (x - mean.values[c]) / (variance.values[c] + 1e-3).sqrt();
        normed * weight.map_or(1.0, |w| w.values[c]) + bias.map_or(0.0, |b| b.values[c])
    };
    x.values.iter().enumerate().map(one).collect()
}

#[test]
fn batch_norms() {
    for dtype in FLOATS {
        for dims in [&[1, 8, 12, 12][..], &[1, 16, 5, 7], &[3, 5], &[2, 3, 7], &[2, 3, 2, 3, 5], &[0, 3, 2, 2]] {
            let channel = [dims[1]];
            let random = |range, seed| Data::random(dtype, &channel, range, seed);
            let statistics = [random((-1.0, 1.0), 4), random((0.2, 3.0), 5)];
            let factors = [random((-1.5, 1.5), 2), random((-1.0, 1.0), 3)];
            for affine in [[true, true], [true, false], [false, true], [false, false]] {
                let given = [affine[0].then_some(&factors[0]), affine[1].then_some(&factors[1])];
                let x = Data::random(dtype, dims, (-2.0, 2.0), 1);
                let want = batch_reference(&x, given, &statistics);
                batch_model(dtype, dims, given, &statistics).check(&[&x], |got| {
                    assert_close(&got[0], dims, &want, tolerance(dtype, 4));
                    assert_close(&got[1], &[0], &[], (0.0, 0.0));
                });
            }
        }
    }
}

#[test]
fn batch_norms_of_changing_pictures() {
    let random = |range, seed| Data::random(DType::F32, &[5], range, seed);
    let statistics = [random((-1.0, 1.0), 4), random((0.2, 3.0), 5)];
    let make = |(images, rows, columns): (u32, u32, u32)| {
        [Data::random(DType::F32, &[images, 5, rows, columns], (-1.0, 1.0), u64::from(rows))]
    };
    let m = batch_model(DType::F32, &[2, 5, 9, 7], [None, None], &statistics);
    check_in_turn(&m, &[(2, 9, 7), (1, 9, 3), (2, 1, 1), (2, 9, 7)].map(make), |[x], got| {
        let want = batch_reference(x, [None, None], &statistics);
        assert_close(&got[0], &x.dims, &want, tolerance(DType::F32, 4));
    });
}

#[test]
fn channels_that_do_not_fit_are_refused() {
    let (x, w) = (Data::random(DType::F32, &[2, 6, 3], (0.0, 1.0), 1), Data::random(DType::F32, &[4], (0.0, 1.0), 1));
    let text = group_model(DType::F32, &x.dims, 4, [None, None]).load().err().unwrap().to_string();
    assert!(text.contains("[2, 6, 3] does not fall into groups"), "{text}");
    let text = group_model(DType::F32, &x.dims, 3, [None, Some(&w)]).load().err().unwrap().to_string();
    assert!(text.contains("bias is float32 [4], expected 6 numbers"), "{text}");
    let statistics = [w.clone(), w];
    let text = batch_model(DType::F32, &x.dims, [None, None], &statistics).load().err().unwrap().to_string();
    assert!(text.contains("mean is float32 [4], expected 6 numbers"), "{text}");
}

#[test]
fn a_weight_of_another_width_is_refused() {
    let (x, w) = (Data::random(DType::F32, &[2, 8], (0.0, 1.0), 1), Data::random(DType::F32, &[4], (0.0, 1.0), 1));
    let m = Model::single("et_vk.rms_norm.default", &[&x, &w], &[Entry::Null], DType::F32, &[2, 8]);
    let text = m.load().err().unwrap().to_string();
    assert!(text.contains("weight is float32 [4], expected 8 numbers"), "{text}");
}
