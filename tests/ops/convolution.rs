use executorch_webgpu::gpu::Profile;
use executorch_webgpu::graph::DType;
use executorch_webgpu::ops::linear::Algorithm;
use executorch_webgpu::options::Options;

use crate::cases::{FLOATS, check_in_turn};
use crate::common::writer::Id;
use crate::common::{Data, Model, assert_close, tolerance};
use crate::q4_layer::ways;

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] = &[pictures, lines, transposed_pictures, results_between_bounds];

/// The arguments of a convolution besides its tensors; lines have one row.
#[derive(Clone, Copy)]
struct Form {
    stride: [i64; 2],
    padding: [i64; 2],
    dilation: [i64; 2],
    /// Output padding of a transposed convolution.
    transposed: Option<[i64; 2]>,
    groups: i64,
    biased: bool,
}

const PLAIN: Form =
    Form { stride: [1, 1], padding: [0, 0], dilation: [1, 1], transposed: None, groups: 1, biased: true };

/// `[batch, channels, rows, columns]` of a shape of rank 3 or 4.
fn picture(dims: &[u32]) -> [i64; 4] {
    let rows = if dims.len() == 4 { dims[2] } else { 1 };
    [dims[0], dims[1], rows, *dims.last().unwrap()].map(i64::from)
}

/// The result's shape and elements. Every product of an input and a weight is added where it belongs: an input at `i` with
/// element `k` of the window goes to `o` where `o * stride + k * dilation - padding = i`, the other way round if transposed.
fn reference(x: &Data, w: &Data, bias: Option<&Data>, form: &Form) -> (Vec<u32>, Vec<f64>) {
    let ([batch, channels, rows, columns], [wo, wi, high, wide]) = (picture(&x.dims), picture(&w.dims));
    let made = if form.transposed.is_some() { wi * form.groups } else { wo };
    let length = |axis: usize, size: i64, kernel: i64| {
        let (s, p, span) = (form.stride[axis], form.padding[axis], form.dilation[axis] * (kernel - 1));
        match form.transposed {
            Some(extra) => (size - 1) * s - 2 * p + span + extra[axis] + 1,
            None => (size + 2 * p - span - 1) / s + 1,
        }
    };
    let (down, across) = (length(0, rows, high), length(1, columns, wide));
    let (taken, made_each) = (channels / form.groups, made / form.groups);
    let mut sums = vec![0.0; (batch * made * down * across) as usize];
    let meets = |axis: usize, o: i64, i: i64, k: i64| {
        let (o, i) = if form.transposed.is_some() { (i, o) } else { (o, i) };
        o * form.stride[axis] + k * form.dilation[axis] - form.padding[axis] == i
    };
    for index in 0..sums.len() as i64 {
        let (ox, oy) = (index % across, index / across % down);
        let (o, b) = (index / (across * down) % made, index / (across * down * made));
        let mut sum = bias.map_or(0.0, |bias| bias.values[o as usize]);
        for (ky, iy) in (0..high).flat_map(|k| (0..rows).map(move |i| (k, i))).filter(|&(k, i)| meets(0, oy, i, k)) {
            for (kx, ix) in
                (0..wide).flat_map(|k| (0..columns).map(move |i| (k, i))).filter(|&(k, i)| meets(1, ox, i, k))
            {
                for c in 0..taken {
                    let from = o / made_each * taken + c;
                    let (first, second) = if form.transposed.is_some() { (from, o % made_each) } else { (o, c) };
                    let weight = w.values[(((first * wi + second) * high + ky) * wide + kx) as usize];
                    sum += weight * x.values[(((b * channels + from) * rows + iy) * columns + ix) as usize];
                }
            }
        }
        sums[index as usize] = sum;
    }
    let mut dims = vec![batch as u32, made as u32];
    dims.extend(if x.dims.len() == 4 { vec![down as u32, across as u32] } else { vec![across as u32] });
    (dims, sums)
}

/// `name(x, w, bias, ..) -> out` with constant weights, and further arguments from `last`.
fn model(name: &str, x: &Data, [w, bias]: [&Data; 2], form: &Form, last: &[Option<f64>]) -> Model {
    let (dims, _) = reference(x, w, None, form);
    let mut m = Model::new();
    let mut args: Vec<Id> = vec![m.input(x.dtype, &x.dims), m.constant(w)];
    args.push(if form.biased { m.constant(bias) } else { m.null() });
    let first = 4 - x.dims.len();
    for pair in [form.stride, form.padding, form.dilation] {
        args.push(m.ints(&pair[first..]));
    }
    args.push(m.boolean(form.transposed.is_some()));
    args.push(m.ints(&form.transposed.unwrap_or_default()[first..]));
    args.push(m.int(form.groups));
    for bound in last {
        args.push(bound.map(|x| m.double(x)).unwrap_or_else(|| m.null()));
    }
    let out = m.tensor(x.dtype, &dims);
    args.push(out);
    m.op(name, &args);
    m.output(out);
    m
}

const NAME: &str = "aten.convolution.default";

fn weights(dtype: DType, dims: &[u32], form: &Form) -> [Data; 2] {
    let made = if form.transposed.is_some() { dims[1] * form.groups as u32 } else { dims[0] };
    [Data::random(dtype, dims, (-1.0, 1.0), 5), Data::random(dtype, &[made], (-1.0, 1.0), 6)]
}

/// Terms of one sum.
fn terms(w: &Data, form: &Form) -> usize {
    let lines = if form.transposed.is_some() { w.dims[0] / form.groups as u32 } else { w.dims[1] };
    lines as usize * w.dims[2..].iter().product::<u32>() as usize
}

fn check(x: &[u32], w: &[u32], form: Form) {
    for dtype in FLOATS {
        let x = Data::random(dtype, x, (-1.0, 1.0), 4);
        let [w, bias] = weights(dtype, w, &form);
        let (dims, want) = reference(&x, &w, form.biased.then_some(&bias), &form);
        let (abs, rel) = tolerance(dtype, terms(&w, &form));
        model(NAME, &x, [&w, &bias], &form, &[]).check(&[&x], |got| assert_close(&got[0], &dims, &want, (abs, rel)));
    }
}

#[test]
fn pictures() {
    check(&[1, 3, 32, 32], &[16, 3, 3, 3], Form { padding: [1, 1], ..PLAIN });
    check(&[2, 3, 32, 32], &[70, 3, 16, 16], Form { stride: [16, 16], ..PLAIN });
    check(&[1, 3, 17, 19], &[8, 3, 3, 3], Form { stride: [2, 2], padding: [1, 1], biased: false, ..PLAIN });
    check(&[1, 3, 7, 9], &[6, 3, 2, 3], Form { stride: [1, 2], padding: [1, 0], dilation: [2, 1], ..PLAIN });
    check(&[2, 5, 7, 11], &[13, 5, 3, 5], Form { padding: [2, 4], dilation: [2, 2], ..PLAIN });
    // Windows that lie in the padding alone, and one window that is larger than the picture.
    check(&[1, 2, 3, 3], &[3, 2, 2, 2], Form { padding: [5, 5], ..PLAIN });
    check(&[1, 2, 3, 3], &[3, 2, 7, 7], Form { padding: [2, 2], ..PLAIN });
}

#[test]
fn single_pixels_and_edges_of_tiles() {
    for (channels, made, side) in [(1, 1, 1), (64, 64, 8), (65, 63, 8), (8, 130, 13), (63, 16, 3), (67, 17, 16)] {
        check(&[2, channels, side, side], &[made, channels, 1, 1], PLAIN);
    }
    check(&[1, 6, 9, 9], &[7, 6, 1, 1], Form { stride: [2, 3], ..PLAIN });
    check(&[1, 6, 4, 4], &[7, 6, 1, 1], Form { padding: [1, 1], ..PLAIN });
}

/// Every way to multiply, of pictures whose pixels, channels and terms fill no tile.
#[test]
fn every_way_of_multiplying_patches() {
    let padded = Form { stride: [2, 1], padding: [1, 2], ..PLAIN };
    let transposed = Form { stride: [2, 2], padding: [1, 1], transposed: Some([1, 0]), ..PLAIN };
    let cases: [(&[u32], &[u32], Form); 4] = [
        (&[3, 17, 9, 11], &[35, 17, 3, 3], padded),
        (&[2, 68, 9, 7], &[130, 68, 1, 1], Form { biased: false, ..PLAIN }),
        (&[2, 23, 6, 5], &[23, 37, 3, 2], transposed),
        (&[1, 8, 40], &[33, 8, 5], Form { padding: [0, 2], dilation: [1, 3], ..PLAIN }),
    ];
    for (x, w, form) in cases {
        for dtype in FLOATS {
            let x = Data::random(dtype, x, (-1.0, 1.0), 4);
            let [w, bias] = weights(dtype, w, &form);
            let (dims, want) = reference(&x, &w, form.biased.then_some(&bias), &form);
            let model = model(NAME, &x, [&w, &bias], &form, &[]);
            for force_gemm in tiles() {
                let options = Options { force_gemm, ..Options::default() };
                let limit = tolerance(dtype, terms(&w, &form));
                model.check_with(&options, &[&x], |got| assert_close(&got[0], &dims, &want, limit));
            }
        }
    }
}

/// The ways that are not for few rows.
fn tiles() -> impl Iterator<Item = Option<Algorithm>> {
    let tile = |way: &Option<Algorithm>| matches!(way, None | Some(Algorithm::Tile { .. } | Algorithm::Coop { .. }));
    ways(Profile::Full).into_iter().filter(tile)
}

/// Pictures in halves as large as those of networks, and infinities in them.
#[test]
fn halves_of_any_magnitude() {
    let form = Form { padding: [1, 1], ..PLAIN };
    let mut x = Data::random(DType::F16, &[2, 64, 12, 13], (-60000.0, 60000.0), 4);
    let [w, bias] = weights(DType::F16, &[70, 64, 3, 3], &form);
    let w = Data::random(DType::F16, &w.dims, (-4e-5, 4e-5), 9);
    let check = |x: &Data| {
        let (dims, want) = reference(x, &w, Some(&bias), &form);
        let most = 60000.0 * 4e-5 * 576f64.sqrt();
        model(NAME, x, [&w, &bias], &form, &[]).check(&[x], |got| {
            assert_close(&got[0], &dims, &want, (most * 2e-3, 1e-3));
        });
    };
    check(&x);
    x.values.fill(0.0);
    x.values[5 * 13 + 6] = f64::INFINITY;
    let form = Form { padding: [1, 1], biased: false, ..PLAIN };
    let (dims, want) = reference(&x, &w, None, &form);
    model(NAME, &x, [&w, &bias], &form, &[]).check(&[&x], |got| {
        assert_eq!(got[0].dims, dims);
        for (at, (got, want)) in got[0].values.iter().zip(&want).enumerate() {
            assert!(got.is_nan() == want.is_nan() && (got == want || got.is_nan()), "{at}: {got} instead of {want}");
        }
    });
}

#[test]
fn groups() {
    check(&[1, 8, 13, 13], &[8, 1, 3, 3], Form { padding: [1, 1], groups: 8, ..PLAIN });
    check(&[2, 6, 9, 7], &[12, 1, 5, 3], Form { stride: [2, 1], padding: [2, 1], groups: 6, biased: false, ..PLAIN });
    check(&[1, 8, 8, 8], &[8, 4, 3, 3], Form { padding: [1, 1], groups: 2, ..PLAIN });
    check(&[2, 9, 5, 5], &[6, 3, 1, 1], Form { groups: 3, ..PLAIN });
    check(&[1, 7, 16, 15], &[7, 1, 3, 3], Form { padding: [2, 2], dilation: [2, 2], groups: 7, ..PLAIN });
    check(&[2, 3, 7, 12], &[3, 1, 3, 3], Form { padding: [1, 1], groups: 3, ..PLAIN });
    check(&[1, 4, 9, 16], &[4, 1, 5, 5], Form { stride: [2, 2], padding: [2, 2], groups: 4, ..PLAIN });
    check(&[1, 4, 5, 8], &[4, 1, 2, 4], Form { padding: [0, 5], dilation: [1, 2], groups: 4, ..PLAIN });
    // Neighbours share what their windows cover, or not where windows are wide.
    check(&[2, 4, 9, 22], &[4, 1, 5, 7], Form { stride: [1, 3], padding: [2, 3], groups: 4, ..PLAIN });
    check(&[1, 3, 6, 41], &[3, 1, 2, 5], Form { dilation: [1, 4], padding: [1, 8], groups: 3, ..PLAIN });
}

#[test]
fn lines() {
    check(&[1, 4, 5], &[6, 4, 1], PLAIN);
    check(&[2, 3, 4], &[5, 3, 3], Form { padding: [0, 1], ..PLAIN });
    check(&[1, 2, 11], &[3, 2, 3], Form { padding: [0, 2], dilation: [1, 2], ..PLAIN });
    check(&[1, 6, 10], &[5, 6, 3], Form { stride: [1, 2], biased: false, ..PLAIN });
    check(&[3, 10, 10], &[10, 1, 3], Form { padding: [0, 2], dilation: [1, 2], groups: 10, ..PLAIN });
    check(&[1, 4, 9], &[6, 2, 5], Form { groups: 2, ..PLAIN });
    check(&[2, 5, 7], &[5, 3, 4], Form { stride: [1, 3], padding: [0, 1], transposed: Some([0, 2]), ..PLAIN });
    check(&[1, 1, 1500], &[2, 1, 9], Form { padding: [0, 4], ..PLAIN });
}

#[test]
fn transposed_pictures() {
    let transposed = |extra| Form { transposed: Some(extra), ..PLAIN };
    check(&[1, 4, 5, 5], &[4, 4, 2, 2], Form { stride: [2, 2], ..transposed([0, 0]) });
    check(&[2, 3, 4, 7], &[3, 5, 3, 3], Form { stride: [2, 2], padding: [1, 1], ..transposed([1, 1]) });
    check(&[1, 7, 3, 5], &[7, 70, 3, 2], Form { stride: [3, 1], padding: [0, 1], biased: false, ..transposed([2, 0]) });
    check(&[1, 3, 5, 4], &[3, 2, 3, 3], Form { stride: [2, 1], dilation: [2, 3], ..transposed([1, 0]) });
    check(&[1, 6, 5, 5], &[6, 2, 3, 3], Form { stride: [2, 2], padding: [1, 1], groups: 3, ..transposed([1, 0]) });
    check(&[2, 5, 6, 6], &[5, 1, 4, 4], Form { stride: [2, 2], padding: [1, 1], groups: 5, ..transposed([0, 0]) });
    check(&[1, 64, 9, 9], &[64, 66, 1, 1], transposed([0, 0]));
    // Results that meet no element of a window, and windows that are far apart.
    check(
        &[2, 3, 4, 3],
        &[3, 4, 3, 2],
        Form { stride: [4, 6], dilation: [2, 4], padding: [1, 0], ..transposed([1, 3]) },
    );
    check(&[1, 2, 3, 2], &[2, 3, 2, 3], Form { stride: [70, 3], ..transposed([5, 1]) });
}

#[test]
fn results_between_bounds() {
    for (bounds, groups) in [
        ([Some(0.0), Some(6.0)], 1),
        ([None, Some(0.25)], 1),
        ([Some(-0.5), None], 2),
        ([None, None], 1),
        // The upper bound wins.
        ([Some(1.0), Some(-1.0)], 4),
    ] {
        for (biased, dtype) in [(true, DType::F32), (false, DType::F32), (true, DType::F16)] {
            let form = Form { padding: [1, 1], groups, biased, ..PLAIN };
            let mut x = Data::random(dtype, &[1, 4, 6, 7], (-3.0, 3.0), 4);
            x.values[0] = f64::NAN;
            let [w, bias] = weights(dtype, &[8, 4 / groups as u32, 3, 3], &form);
            let (dims, mut want) = reference(&x, &w, biased.then_some(&bias), &form);
            for y in &mut want {
                let low = bounds[0].map_or(*y, |low| if *y < low { low } else { *y });
                *y = bounds[1].map_or(low, |high| if low > high { high } else { low });
            }
            let limit = if dtype == DType::F16 { (2e-2, 1e-2) } else { (3e-5, 2e-5) };
            model("et_vk.conv_with_clamp.default", &x, [&w, &bias], &form, &bounds)
                .check(&[&x], |got| assert_close(&got[0], &dims, &want, limit));
        }
    }
}

/// One model for pictures of any batch and size up to a bound.
#[test]
fn pictures_of_changing_size() {
    let transposed = Form { stride: [2, 2], padding: [1, 1], transposed: Some([1, 1]), ..PLAIN };
    for (form, w) in [
        (Form { stride: [2, 1], padding: [1, 1], ..PLAIN }, [5, 4, 3, 3]),
        (PLAIN, [5, 4, 1, 1]),
        (Form { padding: [1, 1], groups: 4, ..PLAIN }, [4, 1, 3, 3]),
        (transposed, [4, 5, 3, 3]),
        (Form { groups: 2, ..transposed }, [4, 3, 3, 3]),
    ] {
        let [w, bias] = weights(DType::F32, &w, &form);
        let make = |(b, rows, columns): (u32, u32, u32)| {
            [Data::random(DType::F32, &[b, 4, rows, columns], (-1.0, 1.0), u64::from(rows))]
        };
        let sizes = [(3, 17, 19), (1, 17, 19), (3, 5, 19), (2, 16, 8), (1, 1, 1), (0, 4, 4), (3, 17, 19)];
        let m = model(NAME, &make(sizes[0])[0], [&w, &bias], &form, &[]);
        check_in_turn(&m, &sizes.map(make), |[x], got| {
            let (dims, want) = reference(x, &w, Some(&bias), &form);
            assert_close(&got[0], &dims, &want, tolerance(DType::F32, terms(&w, &form)));
        });
    }
}

#[test]
fn lines_of_changing_length() {
    let form = Form { stride: [1, 2], padding: [0, 1], ..PLAIN };
    let [w, bias] = weights(DType::F32, &[4, 3, 3], &form);
    let make = |n: u32| [Data::random(DType::F32, &[2, 3, n], (-1.0, 1.0), u64::from(n))];
    let m = model(NAME, &make(10)[0], [&w, &bias], &form, &[]);
    check_in_turn(&m, &[10, 7, 1, 2, 10].map(make), |[x], got| {
        let (dims, want) = reference(x, &w, Some(&bias), &form);
        assert_close(&got[0], &dims, &want, tolerance(DType::F32, 9));
    });
}

#[test]
fn what_does_not_fit_is_refused() {
    let x = Data::random(DType::F32, &[1, 4, 5, 5], (-1.0, 1.0), 4);
    let refused = |w: &[u32], form: Form, change: &dyn Fn(&mut Model), words: &str| {
        let [w, bias] = weights(DType::F32, w, &form);
        let mut m = model(NAME, &x, [&w, &bias], &form, &[]);
        change(&mut m);
        let text = m.load().err().unwrap().to_string();
        assert!(text.contains(NAME) && text.contains(words), "{text}");
    };
    let set = |index: usize, entry: crate::common::writer::Entry| {
        move |m: &mut Model| m.payload.values[m.payload.calls[0].1[index]] = entry.clone()
    };
    use crate::common::writer::Entry;
    refused(&[3, 4, 3, 3], PLAIN, &set(8, Entry::Int(3)), "in 3 groups");
    refused(&[3, 4, 3, 3], PLAIN, &set(8, Entry::Int(0)), "in 0 groups");
    refused(&[3, 4, 3, 3], PLAIN, &set(8, Entry::Int(-1)), "in 0 groups");
    refused(&[3, 4, 3, 3], PLAIN, &set(3, Entry::Ints(vec![0, 1])), "at least 1");
    refused(&[3, 4, 3, 3], PLAIN, &set(4, Entry::Ints(vec![-1, 1])), "at least 0");
    refused(&[3, 4, 3, 3], PLAIN, &set(5, Entry::Ints(vec![3, 1])), "does not fit a picture");
    refused(&[3, 4, 3, 3], PLAIN, &set(5, Entry::Ints(vec![1, 1, 1])), "expected 2 numbers");
    refused(&[3, 4, 3, 3], PLAIN, &set(2, Entry::Int(1)), "argument 2");
}

#[test]
fn long_sums_are_whole_or_refused() {
    let form = Form { biased: false, ..PLAIN };
    for (groups, rows, terms) in [(1, 1, 70_000), (2, 1, 70_000), (1, 40, 1_100_000)] {
        let form = Form { groups, ..form };
        let each = terms / rows as usize;
        let dims = [1, (each as i64 * groups) as u32, rows, 1];
        let x = Data::new(DType::F32, &dims, vec![1.0; each * groups as usize * rows as usize]);
        let w = Data::new(DType::F32, &[2, each as u32, rows, 1], vec![1.0; 2 * each * rows as usize]);
        let bias = Data::f32(&[2], vec![0.0; 2]);
        match model(NAME, &x, [&w, &bias], &form, &[]).load() {
            Ok(mut running) => {
                let got = running.run(&[&x]).unwrap();
                assert_close(&got[0], &[1, 2, 1, 1], &[(each * rows as usize) as f64; 2], (0.0, 0.0));
            }
            Err(error) => assert!(error.to_string().contains("software adapter"), "{error}"),
        }
    }
}
