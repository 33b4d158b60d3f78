use executorch_webgpu::graph::{DType, Dims};
use half::f16;

/// A tensor whose elements are kept as f64, which holds every element type but wide int64 exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    pub dtype: DType,
    pub dims: Vec<u32>,
    pub values: Vec<f64>,
}

impl Data {
    pub fn new(dtype: DType, dims: &[u32], values: Vec<f64>) -> Data {
        assert_eq!(values.len(), dims.iter().product::<u32>() as usize);
        Data { dtype, dims: dims.to_vec(), values }.rounded()
    }

    pub fn f32(dims: &[u32], values: Vec<f64>) -> Data {
        Data::new(DType::F32, dims, values)
    }

    pub fn i64(dims: &[u32], values: &[i64]) -> Data {
        Data::new(DType::I64, dims, values.iter().map(|&n| n as f64).collect())
    }

    /// Random elements, uniform between `low` and `high`, rounded to the type; bools are fair coins.
    pub fn random(dtype: DType, dims: &[u32], (low, high): (f64, f64), seed: u64) -> Data {
        let mut rng = Rng::new(seed);
        let count = dims.iter().product::<u32>() as usize;
        let values = (0..count).map(|_| match dtype {
            DType::Bool => f64::from(u8::from(rng.next() & 1 == 1)),
            // The device holds doubles as singles.
            DType::F64 => f64::from(rng.uniform(low, high) as f32),
            d if d.is_float() => rng.uniform(low, high),
            _ => rng.uniform(low, high + 1.0).floor().clamp(low, high),
        });
        Data::new(dtype, dims, values.collect())
    }

    /// The same numbers as the type holds them.
    fn rounded(mut self) -> Data {
        let bytes = self.bytes();
        self.values = decode(self.dtype, &bytes);
        self
    }

    pub fn shape(&self) -> Dims {
        Dims::new(&self.dims).unwrap()
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.values.len() * self.dtype.size());
        self.values.iter().for_each(|&x| encode(self.dtype, x, &mut bytes));
        bytes
    }

    pub fn from_bytes(dtype: DType, dims: &[u32], bytes: &[u8]) -> Data {
        Data { dtype, dims: dims.to_vec(), values: decode(dtype, bytes) }
    }
}

fn encode(dtype: DType, x: f64, to: &mut Vec<u8>) {
    match dtype {
        DType::Bool => to.push(u8::from(x != 0.0)),
        DType::U8 => to.push(x as u8),
        DType::I8 => to.push(x as i8 as u8),
        DType::I32 => to.extend((x as i32).to_le_bytes()),
        DType::I64 => to.extend((x as i64).to_le_bytes()),
        DType::F16 => to.extend(f16::from_f64(x).to_le_bytes()),
        DType::F32 => to.extend((x as f32).to_le_bytes()),
        DType::F64 => to.extend(x.to_le_bytes()),
    }
}

fn decode(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    let cell = |c: &[u8]| match dtype {
        DType::Bool | DType::U8 => f64::from(c[0]),
        DType::I8 => f64::from(c[0] as i8),
        DType::I32 => f64::from(i32::from_le_bytes(c.try_into().unwrap())),
        DType::I64 => i64::from_le_bytes(c.try_into().unwrap()) as f64,
        DType::F16 => f16::from_le_bytes(c.try_into().unwrap()).to_f64(),
        DType::F32 => f64::from(f32::from_le_bytes(c.try_into().unwrap())),
        DType::F64 => f64::from_le_bytes(c.try_into().unwrap()),
    };
    bytes.chunks_exact(dtype.size()).map(cell).collect()
}

/// SplitMix64: small, seedable, good enough to fill tensors.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x1234_5678)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * ((self.next() >> 11) as f64 / (1u64 << 53) as f64)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// Absolute and relative tolerance of a result of type `dtype` that sums `terms` products of magnitude about 1, computed
/// in f32. Every comparison of the suite uses it.
pub fn tolerance(dtype: DType, terms: usize) -> (f64, f64) {
    match dtype {
        DType::F16 => (2e-3, 2e-3),
        d if d.is_float() => (1e-5f64.max(2e-7 * (terms as f64).sqrt() * 10.0), 2e-5),
        _ => (0.0, 0.0),
    }
}

/// Tolerance of a sum of `terms` products whose factors, 4-bit weights below 0.2 and activations below `range`, are rounded
/// to halves.
pub fn tolerance_of_halves(terms: usize, range: f64) -> (f64, f64) {
    (1e-4 * (terms as f64).sqrt() * range, 1e-3)
}

/// Fails when an element is further from `want` than the tolerance, absolutely and relatively; NaN only equals NaN, and an
/// infinity only itself.
#[track_caller]
pub fn assert_close(got: &Data, dims: &[u32], want: &[f64], (abs, rel): (f64, f64)) {
    assert_eq!(got.dims, dims, "shape");
    assert_eq!(got.values.len(), want.len());
    let near = |a: f64, b: f64| b.is_finite() && (a - b).abs() <= abs.max(rel * b.abs());
    let close = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || near(a, b);
    let wrong: Vec<usize> = (0..want.len()).filter(|&i| !close(got.values[i], want[i])).collect();
    if let Some(&i) = wrong.first() {
        let worst = wrong.iter().map(|&i| (got.values[i] - want[i]).abs()).fold(0.0, f64::max);
        panic!(
            "{} of {} elements differ, first at {i}: {} instead of {}, largest difference {worst:e} (shape {dims:?})",
            wrong.len(),
            want.len(),
            got.values[i],
            want[i]
        );
    }
}
