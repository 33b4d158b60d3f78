//! What several families share: shapes, special numbers, wrapping integers, calls of one model at several sizes.

use executorch_webgpu::gpu::Profile;
use executorch_webgpu::graph::DType;
use executorch_webgpu::options::Options;

use crate::common::{Data, Model};

pub const FLOATS: [DType; 2] = [DType::F32, DType::F16];
pub const INTEGERS: [DType; 4] = [DType::I32, DType::I64, DType::I8, DType::U8];
pub const ALL: [DType; 8] =
    [DType::F32, DType::F16, DType::I32, DType::I64, DType::I8, DType::U8, DType::Bool, DType::F64];

/// Rank 0, one element, parts of a word, primes, a size around a workgroup's reach, nothing at all.
pub const SHAPES: [&[u32]; 8] = [&[], &[1], &[3], &[37, 41], &[2, 3, 5, 7], &[65, 1], &[257], &[3, 0, 2]];

/// Numbers at which formulas go wrong.
pub const SPECIAL: [f64; 16] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    0.0,
    -0.0,
    1.0,
    -1.0,
    88.0,
    -88.0,
    20.0,
    -20.0,
    0.5,
    -0.5,
    2.5,
    -1.5,
    1e-6,
];

/// The number as the type holds it: integers wrap, floats round.
pub fn hold(dtype: DType, x: f64) -> f64 {
    match dtype {
        DType::I8 => f64::from(x as i64 as i8),
        DType::U8 => f64::from(x as i64 as u8),
        DType::I32 | DType::I64 => f64::from(x as i64 as i32),
        _ => Data::new(dtype, &[1], vec![x]).values[0],
    }
}

/// Runs a model at each of several input sets without loading it again, on a full and on a minimal device.
#[track_caller]
pub fn check_in_turn<const N: usize>(model: &Model, calls: &[[Data; N]], verify: impl Fn(&[Data; N], &[Data])) {
    if model.noted() {
        return;
    }
    for profile in [Profile::Full, Profile::Minimal] {
        let mut running = model.load_with(Options::default(), profile).unwrap();
        for inputs in calls {
            running.program.fill_activations(0xFF).unwrap();
            let refs: Vec<&Data> = inputs.iter().collect();
            verify(inputs, &running.run(&refs).unwrap());
        }
    }
}

/// Sizes of a dimension with bound `bound`: the bound, below it, one, the bound again.
pub fn sizes(bound: u32) -> [u32; 5] {
    [bound, bound / 2 + 1, 1, 2, bound]
}

/// The shape that all shapes broadcast to.
pub fn broadcast(shapes: &[&[u32]]) -> Vec<u32> {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap();
    let size = |axis: usize| {
        let own = shapes.iter().filter_map(|s| (axis + s.len()).checked_sub(rank).map(|at| s[at]));
        own.reduce(|a, b| if a == 1 { b } else { a }).unwrap()
    };
    (0..rank).map(size).collect()
}

/// Coordinates of flat index `i` in `dims`.
pub fn coordinates(mut i: usize, dims: &[u32]) -> Vec<usize> {
    let mut digits: Vec<usize> = dims
        .iter()
        .rev()
        .map(|&size| {
            let digit = i % size as usize;
            i /= size as usize;
            digit
        })
        .collect();
    digits.reverse();
    digits
}

/// Flat index of coordinates in `dims`.
pub fn flat(coordinates: &[usize], dims: &[u32]) -> usize {
    coordinates.iter().zip(dims).fold(0, |sum, (&c, &size)| sum * size as usize + c)
}

/// What `x`, repeated to shape `dims`, has at flat index `i`.
pub fn pick(x: &Data, dims: &[u32], i: usize) -> f64 {
    let at = coordinates(i, dims);
    let own: Vec<usize> =
        at[dims.len() - x.dims.len()..].iter().zip(&x.dims).map(|(&c, &size)| if size == 1 { 0 } else { c }).collect();
    x.values[flat(&own, &x.dims)]
}
