use executorch_webgpu::graph::DType;

use crate::cases::{FLOATS, check_in_turn};
use crate::common::writer::{Entry, Id};
use crate::common::{Data, Model, assert_close, tolerance};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] = &[averages_of_windows, maxima_of_windows];

const AVERAGE: &str = "aten.avg_pool2d.default";
const MAXIMUM: &str = "aten.max_pool2d.default";
const WITH_PLACES: &str = "aten.max_pool2d_with_indices.default";

#[derive(Clone, Copy)]
struct Form {
    kernel: [i64; 2],
    /// Empty where absent: as large as the kernel.
    stride: Option<[i64; 2]>,
    padding: [i64; 2],
    dilation: [i64; 2],
    ceil: bool,
    count_padding: bool,
    divisor: Option<i64>,
}

const PLAIN: Form = Form {
    kernel: [2, 2],
    stride: None,
    padding: [0, 0],
    dilation: [1, 1],
    ceil: false,
    count_padding: true,
    divisor: None,
};

impl Form {
    /// Windows along an axis of this size.
    fn count(&self, axis: usize, size: i64) -> i64 {
        let (s, p) = (self.stride.unwrap_or(self.kernel)[axis], self.padding[axis]);
        let rest = size + 2 * p - self.dilation[axis] * (self.kernel[axis] - 1) - 1;
        let count = if self.ceil { (rest + s - 1) / s + 1 } else { rest / s + 1 };
        // A window must start in the picture or in the padding before it.
        if self.ceil && (count - 1) * s >= size + p { count - 1 } else { count }
    }

    /// Coordinates under window `o` of an axis, also those outside of it.
    fn under(&self, axis: usize, o: i64) -> impl Iterator<Item = i64> + use<> {
        let (start, step) = (o * self.stride.unwrap_or(self.kernel)[axis] - self.padding[axis], self.dilation[axis]);
        (0..self.kernel[axis]).map(move |k| start + k * step)
    }
}

/// Applies `fold` to the elements and places under each window, and the number of elements of it in the padded picture.
fn reference<R>(x: &Data, form: &Form, fold: impl Fn(&[(f64, i64)], usize) -> R) -> (Vec<u32>, Vec<R>) {
    let rank = x.dims.len();
    let (rows, columns) = (i64::from(x.dims[rank - 2]), i64::from(x.dims[rank - 1]));
    let (down, across) = (form.count(0, rows), form.count(1, columns));
    let mut results = Vec::new();
    for plane in x.values.chunks((rows * columns).max(1) as usize) {
        for (oy, ox) in (0..down).flat_map(|y| (0..across).map(move |x| (y, x))) {
            let (mut found, mut padded) = (Vec::new(), 0);
            for (y, x) in form.under(0, oy).flat_map(|y| form.under(1, ox).map(move |x| (y, x))) {
                padded += usize::from(y < rows + form.padding[0] && x < columns + form.padding[1]);
                if (0..rows).contains(&y) && (0..columns).contains(&x) {
                    found.push((plane[(y * columns + x) as usize], y * columns + x));
                }
            }
            results.push(fold(&found, padded));
        }
    }
    let mut dims = x.dims[..rank - 2].to_vec();
    dims.extend([down as u32, across as u32]);
    (dims, results)
}

fn averages(x: &Data, form: &Form) -> (Vec<u32>, Vec<f64>) {
    reference(x, form, |found, padded| {
        let count = if form.count_padding { padded } else { found.len() };
        let sum: f64 = found.iter().map(|(v, _)| v).sum();
        if found.is_empty() { 0.0 } else { sum / form.divisor.map_or(count as f64, |divisor| divisor as f64) }
    })
}

/// Maxima and their places: the first of equals, the last NaN.
fn maxima(x: &Data, form: &Form) -> (Vec<u32>, Vec<(f64, f64)>) {
    reference(x, form, |found, _| {
        let better = |best: (f64, i64), next: (f64, i64)| if next.0 > best.0 || next.0.is_nan() { next } else { best };
        let (best, place) = found.iter().copied().reduce(better).unwrap();
        (best, place as f64)
    })
}

fn model(op: &str, x: &Data, form: &Form) -> Model {
    let mut m = Model::new();
    let mut args: Vec<Id> = vec![m.input(x.dtype, &x.dims), m.ints(&form.kernel)];
    args.push(m.ints(form.stride.as_ref().map_or(&[][..], |stride| &stride[..])));
    args.push(m.ints(&form.padding));
    let (dims, _) = averages(x, form);
    let mut outputs = vec![m.tensor(x.dtype, &dims)];
    if op == AVERAGE {
        args.extend([m.boolean(form.ceil), m.boolean(form.count_padding)]);
        args.push(m.add(form.divisor.map_or(Entry::Null, Entry::Int)));
    } else {
        args.extend([m.ints(&form.dilation), m.boolean(form.ceil)]);
    }
    if op == WITH_PLACES {
        outputs.push(m.tensor(DType::I64, &dims));
        args.push(m.list(&outputs));
    } else {
        args.push(outputs[0]);
    }
    m.op(op, &args);
    outputs.into_iter().for_each(|id| m.output(id));
    m
}

#[test]
fn averages_of_windows() {
    let stride = Some([2, 2]);
    let three = Form { kernel: [3, 3], stride, padding: [1, 1], ..PLAIN };
    for (dims, form) in [
        (&[1, 8, 12, 12][..], PLAIN),
        (&[2, 3, 5, 5], three),
        (&[2, 3, 5, 5], Form { count_padding: false, ..three }),
        (&[2, 3, 5, 7], Form { kernel: [3, 2], stride: Some([2, 3]), padding: [1, 1], ..PLAIN }),
        (&[1, 2, 5, 5], Form { divisor: Some(3), ..PLAIN }),
        (&[1, 2, 5, 5], Form { divisor: Some(-7), ceil: true, ..three }),
        (&[1, 2, 5, 5], Form { ceil: true, ..PLAIN }),
        (&[1, 2, 6, 8], Form { ceil: true, count_padding: false, ..three }),
        (&[1, 2, 6, 8], Form { ceil: true, ..three }),
        (&[3, 7, 7], Form { kernel: [7, 7], stride: Some([1, 1]), ..PLAIN }),
        (&[1, 1, 1, 37], Form { kernel: [1, 5], stride: Some([1, 3]), padding: [0, 2], ..PLAIN }),
        (&[0, 2, 4, 4], PLAIN),
    ] {
        for dtype in FLOATS {
            let x = Data::random(dtype, dims, (-2.0, 2.0), 3);
            let (dims, want) = averages(&x, &form);
            model(AVERAGE, &x, &form).check(&[&x], |got| assert_close(&got[0], &dims, &want, tolerance(dtype, 49)));
        }
    }
}

#[test]
fn maxima_of_windows() {
    let stride = Some([2, 2]);
    let three = Form { kernel: [3, 3], stride, padding: [1, 1], ..PLAIN };
    for (dims, form) in [
        (&[1, 8, 12, 12][..], PLAIN),
        (&[2, 3, 14, 14], PLAIN),
        (&[1, 4, 5, 5], PLAIN),
        (&[1, 8, 7, 7], three),
        (&[1, 8, 6, 9], Form { ceil: true, ..three }),
        (&[2, 3, 4, 2], Form { kernel: [4, 1], padding: [1, 0], dilation: [2, 2], ceil: true, ..PLAIN }),
        (&[2, 3, 9, 11], Form { dilation: [2, 3], stride: Some([1, 2]), ..three }),
        (&[3, 6, 5], Form { kernel: [3, 1], stride: Some([1, 1]), padding: [1, 0], ..PLAIN }),
        (&[0, 2, 4, 4], PLAIN),
    ] {
        for dtype in FLOATS {
            // Few different numbers: ties, and maxima below zero.
            let mut x = Data::random(DType::I32, dims, (-9.0, -1.0), 3);
            x.dtype = dtype;
            for (i, special) in [(5, f64::NAN), (6, f64::INFINITY), (27, f64::NAN), (28, f64::NAN)] {
                if let Some(value) = x.values.get_mut(i) {
                    *value = special;
                }
            }
            x.values.iter_mut().skip(40).take(9).for_each(|value| *value = f64::NEG_INFINITY);
            let (dims, want) = maxima(&x, &form);
            let (best, places): (Vec<f64>, Vec<f64>) = want.into_iter().unzip();
            model(MAXIMUM, &x, &form).check(&[&x], |got| assert_close(&got[0], &dims, &best, (0.0, 0.0)));
            model(WITH_PLACES, &x, &form).check(&[&x], |got| {
                assert_close(&got[0], &dims, &best, (0.0, 0.0));
                assert_close(&got[1], &dims, &places, (0.0, 0.0));
            });
        }
    }
}

#[test]
fn pictures_of_changing_size() {
    let form = Form { kernel: [3, 3], stride: Some([2, 2]), padding: [1, 1], ceil: true, ..PLAIN };
    let make = |(n, rows, columns): (u32, u32, u32)| {
        [Data::random(DType::F32, &[n, 2, rows, columns], (-1.0, 1.0), u64::from(rows))]
    };
    let sizes = [(3, 17, 12), (1, 17, 12), (2, 5, 6), (1, 1, 1), (3, 17, 12)].map(make);
    check_in_turn(&model(AVERAGE, &sizes[0][0], &form), &sizes, |[x], got| {
        let (dims, want) = averages(x, &form);
        assert_close(&got[0], &dims, &want, tolerance(DType::F32, 9));
    });
    check_in_turn(&model(WITH_PLACES, &sizes[0][0], &form), &sizes, |[x], got| {
        let (dims, want) = maxima(x, &form);
        let (best, places): (Vec<f64>, Vec<f64>) = want.into_iter().unzip();
        assert_close(&got[0], &dims, &best, (0.0, 0.0));
        assert_close(&got[1], &dims, &places, (0.0, 0.0));
    });
}

#[test]
fn what_does_not_fit_is_refused() {
    let x = Data::random(DType::F32, &[1, 2, 5, 5], (-1.0, 1.0), 3);
    let refused = |op: &str, index: usize, entry: Entry, words: &str| {
        let mut m = model(op, &x, &PLAIN);
        let id = m.payload.calls[0].1[index];
        m.payload.values[id] = entry;
        let text = m.load().err().unwrap().to_string();
        assert!(text.contains(op) && text.contains(words), "{text}");
    };
    refused(AVERAGE, 1, Entry::Ints(vec![6, 1]), "does not fit a picture of [5, 5]");
    refused(AVERAGE, 1, Entry::Ints(vec![]), "no size");
    refused(AVERAGE, 1, Entry::Ints(vec![0]), "at least 1");
    refused(AVERAGE, 2, Entry::Ints(vec![1 << 40]), "argument 2");
    refused(AVERAGE, 6, Entry::Int(0), "the divisor is 0");
    refused(MAXIMUM, 4, Entry::Ints(vec![9, 9]), "does not fit a picture");
}

#[test]
fn large_windows_are_whole_or_refused() {
    for op in [AVERAGE, MAXIMUM] {
        let form = Form { kernel: [300, 300], ..PLAIN };
        let x = Data::new(DType::F32, &[1, 1, 300, 300], (0..90_000).map(|n| f64::from(n >= 80_000)).collect());
        match model(op, &x, &form).load() {
            Ok(mut running) => {
                let want = if op == AVERAGE { 1.0 / 9.0 } else { 1.0 };
                let got = running.run(&[&x]).unwrap();
                assert_close(&got[0], &[1, 1, 1, 1], &[want], (1e-5, 1e-5));
            }
            Err(error) => assert!(error.to_string().contains("software adapter"), "{error}"),
        }
    }
}

#[test]
fn windows_in_the_padding_alone_are_refused() {
    for op in [AVERAGE, MAXIMUM] {
        let form =
            Form { kernel: [1 << 20, 1 << 20], padding: [1 << 20, 1 << 20], stride: Some([1 << 21; 2]), ..PLAIN };
        let x = Data::f32(&[1, 1, 4, 4], vec![1.0; 16]);
        let mut m = Model::new();
        let mut args = vec![m.input(x.dtype, &x.dims)];
        args.extend([form.kernel, form.stride.unwrap(), form.padding].map(|pair| m.ints(&pair)));
        match op {
            AVERAGE => args.extend([m.boolean(false), m.boolean(true), m.null()]),
            _ => args.extend([m.ints(&[1, 1]), m.boolean(false)]),
        }
        let out = m.tensor(x.dtype, &[1, 1, 1, 1]);
        m.op(op, &[&args[..], &[out]].concat());
        m.output(out);
        assert!(m.load().is_err_and(|error| error.to_string().contains("at most half of a window")));
    }
}
