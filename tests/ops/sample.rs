use executorch_webgpu::graph::DType;

use crate::cases::{FLOATS, check_in_turn};
use crate::common::writer::Entry;
use crate::common::{Data, Model, assert_close, tolerance};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] = &[scaled_pictures, pixels_of_a_grid, places_of_pixels];

const NEAREST: &str = "aten.upsample_nearest2d.vec";
const BILINEAR: &str = "aten.upsample_bilinear2d.vec";
const GRID: &str = "aten.grid_sampler_2d.default";

/// What the size of the result is given by.
#[derive(Clone)]
enum To {
    Size([i64; 2]),
    Scales([f64; 2]),
}

impl To {
    fn entries(&self) -> [Entry; 2] {
        match self {
            To::Size(size) => [Entry::Ints(size.to_vec()), Entry::Null],
            To::Scales(scales) => [Entry::Null, Entry::Doubles(scales.to_vec())],
        }
    }

    fn size(&self, axis: usize, from: u32) -> u32 {
        match self {
            To::Size(size) => size[axis] as u32,
            To::Scales(scales) => (f64::from(from) * scales[axis]).floor() as u32,
        }
    }

    /// Pixels of the operand per pixel of the result, in f32 as PyTorch has it.
    fn ratio(&self, axis: usize, from: u32) -> f32 {
        match self {
            To::Size(size) => from as f32 / size[axis] as f32,
            To::Scales(scales) => (1.0 / scales[axis]) as f32,
        }
    }
}

/// Calls `pixel(plane, y, x)` for each pixel of the result.
fn each(x: &Data, size: [u32; 2], pixel: impl Fn(&[f64], u32, u32) -> f64) -> (Vec<u32>, Vec<f64>) {
    let rank = x.dims.len();
    let planes = x.values.chunks((x.dims[rank - 2] * x.dims[rank - 1]) as usize);
    let places = (0..size[0]).flat_map(|y| (0..size[1]).map(move |x| (y, x)));
    let want = planes.flat_map(|plane| places.clone().map(|(y, x)| pixel(plane, y, x)).collect::<Vec<_>>()).collect();
    ([&x.dims[..rank - 2], &size].concat(), want)
}

fn picture(x: &Data) -> [u32; 2] {
    [x.dims[x.dims.len() - 2], x.dims[x.dims.len() - 1]]
}

fn nearest(x: &Data, to: &To) -> (Vec<u32>, Vec<f64>) {
    let from = picture(x);
    let index = |axis: usize, o: u32| ((o as f32 * to.ratio(axis, from[axis])).floor() as u32).min(from[axis] - 1);
    each(x, [0, 1].map(|axis| to.size(axis, from[axis])), |plane, y, x| {
        plane[(index(0, y) * from[1] + index(1, x)) as usize]
    })
}

/// Hat functions around each pixel, those at the border going on for ever.
fn bilinear(x: &Data, to: &To, corners: bool) -> (Vec<u32>, Vec<f64>) {
    let from = picture(x);
    let size = [0, 1].map(|axis| to.size(axis, from[axis]));
    let place = |axis: usize, o: u32| {
        let last = f64::from(from[axis] - 1);
        let at = match corners {
            true => f64::from(o) * last / f64::from((size[axis] - 1).max(1)),
            false => (f64::from(o) + 0.5) * f64::from(to.ratio(axis, from[axis])) - 0.5,
        };
        at.clamp(0.0, last)
    };
    let hat = |at: f64, pixel: u32| (1.0 - (at - f64::from(pixel)).abs()).max(0.0);
    each(x, size, |plane, oy, ox| {
        let (at_y, at_x) = (place(0, oy), place(1, ox));
        let weight = |(i, v): (usize, &f64)| v * hat(at_y, i as u32 / from[1]) * hat(at_x, i as u32 % from[1]);
        plane.iter().enumerate().map(weight).sum()
    })
}

fn nearest_model(x: &Data, to: &To) -> Model {
    let dims = nearest(x, to).0;
    Model::single(NEAREST, &[x], &to.entries(), x.dtype, &dims)
}

fn bilinear_model(x: &Data, to: &To, corners: bool) -> Model {
    let [size, scales] = to.entries();
    let dims = nearest(x, to).0;
    Model::single(BILINEAR, &[x], &[size, Entry::Bool(corners), scales], x.dtype, &dims)
}

#[test]
fn scaled_pictures() {
    for (dims, to) in [
        (&[1, 2, 36, 36][..], To::Scales([2.0, 2.0])),
        (&[2, 3, 5, 7], To::Size([10, 14])),
        (&[1, 2, 5, 5], To::Scales([1.6, 1.6])),
        (&[1, 2, 5, 5], To::Size([8, 8])),
        (&[3, 7, 9], To::Size([3, 20])),
        (&[1, 1, 7, 31], To::Scales([0.4, 3.3])),
        (&[1, 2, 1, 3], To::Size([5, 1])),
        (&[2, 1, 9, 9], To::Size([9, 9])),
        (&[0, 1, 4, 4], To::Size([8, 8])),
    ] {
        for dtype in FLOATS {
            let x = Data::random(dtype, dims, (-2.0, 2.0), 7);
            let (dims, want) = nearest(&x, &to);
            nearest_model(&x, &to).check(&[&x], |got| assert_close(&got[0], &dims, &want, (0.0, 0.0)));
            for corners in [false, true] {
                let (dims, want) = bilinear(&x, &to, corners);
                bilinear_model(&x, &to, corners)
                    .check(&[&x], |got| assert_close(&got[0], &dims, &want, tolerance(dtype, 16)));
            }
        }
    }
}

#[test]
fn scaled_pictures_of_changing_size() {
    let make = |(n, rows, columns): (u32, u32, u32)| {
        [Data::random(DType::F32, &[n, 2, rows, columns], (-1.0, 1.0), u64::from(rows))]
    };
    let sizes = [(2, 9, 13), (1, 9, 2), (2, 1, 1), (2, 9, 13)].map(make);
    for to in [To::Scales([2.0, 1.5]), To::Size([11, 5])] {
        check_in_turn(&nearest_model(&sizes[0][0], &to), &sizes, |[x], got| {
            let (dims, want) = nearest(x, &to);
            assert_close(&got[0], &dims, &want, (0.0, 0.0));
        });
        for corners in [false, true] {
            check_in_turn(&bilinear_model(&sizes[0][0], &to, corners), &sizes, |[x], got| {
                let (dims, want) = bilinear(x, &to, corners);
                assert_close(&got[0], &dims, &want, tolerance(DType::F32, 16));
            });
        }
    }
}

/// A coordinate in pixels, brought back into the picture or not.
fn padded(at: f64, size: f64, padding: i64, corners: bool) -> f64 {
    let (low, high) = if corners { (0.0, size - 1.0) } else { (-0.5, size - 0.5) };
    let mut at = at;
    if padding == 2 && low == high {
        at = 0.0;
    }
    while padding == 2 && !(low..=high).contains(&at) {
        at = if at < low { 2.0 * low - at } else { 2.0 * high - at };
    }
    if padding == 0 { at } else { at.clamp(0.0, size - 1.0) }
}

fn grid(x: &Data, grid: &Data, modes: (i64, i64, bool)) -> (Vec<u32>, Vec<f64>) {
    let (interpolation, padding, corners) = modes;
    let [rows, columns] = picture(x).map(f64::from);
    let (channels, size) = (x.dims[1], [grid.dims[1], grid.dims[2]]);
    let place =
        |g: f64, size: f64| if corners { (g + 1.0) / 2.0 * (size - 1.0) } else { ((g + 1.0) * size - 1.0) / 2.0 };
    let cubic = |d: f64| match d.abs() {
        d if d < 1.0 => 1.25 * d.powi(3) - 2.25 * d.powi(2) + 1.0,
        d => -0.75 * (d.powi(3) - 5.0 * d.powi(2) + 8.0 * d - 4.0),
    };
    let inside = |plane: &[f64], y: f64, x: f64| {
        let fits = (0.0..rows).contains(&y) && (0.0..columns).contains(&x);
        if fits { plane[(y * columns + x) as usize] } else { 0.0 }
    };
    let mut want = Vec::new();
    for (index, plane) in x.values.chunks((rows * columns) as usize).enumerate() {
        let batch = index / channels as usize * (size[0] * size[1]) as usize;
        for i in 0..(size[0] * size[1]) as usize {
            let at = 2 * (batch + i);
            let (x, y) = (place(grid.values[at], columns), place(grid.values[at + 1], rows));
            let pad = |y: f64, x: f64| (padded(y, rows, padding, corners), padded(x, columns, padding, corners));
            want.push(match interpolation {
                0 => {
                    let (y, x) = pad(y, x);
                    let taps =
                        [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)].map(|(i, j)| (y.floor() + i, x.floor() + j));
                    let weight = |(i, j): (f64, f64)| (1.0 - (y - i).abs()) * (1.0 - (x - j).abs());
                    taps.iter().map(|&(i, j)| weight((i, j)) * inside(plane, i, j)).sum()
                }
                1 => {
                    let (y, x) = pad(y, x);
                    inside(plane, y.round_ties_even(), x.round_ties_even())
                }
                _ => {
                    let taps = (-1..3).flat_map(|i| (-1..3).map(move |j| (i, j)));
                    let tap = |(i, j): (i32, i32)| {
                        let (ty, tx) = (y.floor() + f64::from(i), x.floor() + f64::from(j));
                        let (py, px) = pad(ty, tx);
                        cubic(y - ty) * cubic(x - tx) * inside(plane, py, px)
                    };
                    taps.map(tap).sum()
                }
            });
        }
    }
    (vec![x.dims[0], channels, size[0], size[1]], want)
}

fn grid_model(x: &Data, places: &Data, modes: (i64, i64, bool)) -> Model {
    let entries = [Entry::Int(modes.0), Entry::Int(modes.1), Entry::Bool(modes.2)];
    let dims = [x.dims[0], x.dims[1], places.dims[1], places.dims[2]];
    Model::single(GRID, &[x, places], &entries, x.dtype, &dims)
}

#[test]
fn pixels_of_a_grid() {
    for (dims, places) in [([1, 2, 4, 4], [1, 3, 3, 2]), ([1, 1, 3, 5], [1, 4, 4, 2]), ([2, 3, 4, 4], [2, 2, 6, 2])] {
        for dtype in FLOATS {
            let x = Data::random(dtype, &dims, (-1.0, 1.0), 3);
            // Exact in halves, inside and far outside, never close to the middle between two pixels.
            let mut places = Data::random(DType::I32, &places, (-10.0, 10.0), 4);
            places.values.iter_mut().for_each(|g| *g = *g * 0.25 + 0.03125);
            places.dtype = dtype;
            for interpolation in 0..3 {
                for padding in 0..3 {
                    for corners in [false, true] {
                        let modes = (interpolation, padding, corners);
                        let (dims, want) = grid(&x, &places, modes);
                        grid_model(&x, &places, modes)
                            .check(&[&x, &places], |got| assert_close(&got[0], &dims, &want, tolerance(dtype, 16)));
                    }
                }
            }
        }
    }
}

#[test]
fn pixels_of_changing_grids() {
    let make = |(n, rows): (u32, u32)| {
        let x = Data::random(DType::F32, &[n, 2, rows, 5], (-1.0, 1.0), 3);
        [x, Data::random(DType::F32, &[n, rows + 1, 4, 2], (-1.5, 1.5), 4)]
    };
    let sizes = [(2, 9), (1, 9), (2, 1), (2, 4), (0, 9), (2, 9)].map(make);
    let modes = (0, 1, true);
    check_in_turn(&grid_model(&sizes[0][0], &sizes[0][1], modes), &sizes, |[x, places], got| {
        let (dims, want) = grid(x, places, modes);
        assert_close(&got[0], &dims, &want, tolerance(DType::F32, 16));
    });
}

#[test]
fn places_of_pixels() {
    let priors = |x: &Data, stride: f64, offset: f64| -> Vec<f64> {
        let [rows, columns] = picture(x).map(f64::from);
        let count = (rows * columns) as u32;
        let pixel = |i: u32| [f64::from(i) % columns, (f64::from(i) / columns).floor()];
        (0..count).flat_map(|i| pixel(i).map(|at| (at + offset) * stride)).collect()
    };
    for (dims, stride, offset) in [([1, 3, 8, 10], 8, 0.5), ([1, 3, 4, 4], 16, 0.0), ([1, 3, 5, 7], 4, 1.0)] {
        for dtype in FLOATS {
            let x = Data::random(dtype, &dims, (0.0, 1.0), 3);
            // An integral offset may arrive as an integer.
            let given = if offset == 1.0 { Entry::Int(1) } else { Entry::Double(offset) };
            let size = [dims[2] * dims[3], 2];
            let m = Model::single("et_vk.grid_priors.default", &[&x], &[Entry::Int(stride), given], dtype, &size);
            let want = priors(&x, stride as f64, offset);
            m.check(&[&x], |got| assert_close(&got[0], &size, &want, (0.0, 0.0)));
        }
    }
    let make = |(rows, columns): (u32, u32)| [Data::random(DType::F32, &[1, 2, rows, columns], (0.0, 1.0), 3)];
    let entries = [Entry::Int(8), Entry::Double(0.5)];
    let sizes = [(6, 7), (2, 7), (6, 3), (6, 7)].map(make);
    let m = Model::single("et_vk.grid_priors.default", &[&sizes[0][0]], &entries, DType::F32, &[42, 2]);
    check_in_turn(&m, &sizes, |[x], got| {
        let want = priors(x, 8.0, 0.5);
        assert_close(&got[0], &[x.dims[2] * x.dims[3], 2], &want, (0.0, 0.0));
    });
}

#[test]
fn what_does_not_fit_is_refused() {
    let x = Data::random(DType::F32, &[1, 2, 4, 4], (-1.0, 1.0), 3);
    let refused = |model: Model, words: &str| {
        let text = model.load().err().unwrap().to_string();
        assert!(text.contains(words), "{text}");
    };
    let scaled = |size: Entry, scales: Entry| Model::single(NEAREST, &[&x], &[size, scales], DType::F32, &[1, 2, 8, 8]);
    refused(scaled(Entry::Null, Entry::Null), "expected two or a size");
    refused(scaled(Entry::Null, Entry::Doubles(vec![0.1, 2.0])), "cannot be scaled by [0.1, 2.0]");
    refused(scaled(Entry::Null, Entry::Doubles(vec![f64::NAN, 2.0])), "cannot be scaled");
    refused(scaled(Entry::Ints(vec![0, 8]), Entry::Null), "at least 1");
    let places = Data::random(DType::F32, &[1, 3, 3, 2], (-1.0, 1.0), 3);
    refused(grid_model(&x, &places, (3, 0, true)), "interpolation 3");
    refused(grid_model(&x, &places, (0, -1, true)), "padding -1");
    let places = Data::random(DType::F32, &[2, 3, 3, 2], (-1.0, 1.0), 3);
    refused(grid_model(&x, &places, (0, 0, true)), "[1, 2, 4, 4] at float32 [2, 3, 3, 2]");
}
