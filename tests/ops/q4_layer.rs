//! A 4-bit layer under test, and the ways to compute it.

use executorch_webgpu::gpu::{Gpu, Profile};
use executorch_webgpu::graph::DType;
use executorch_webgpu::ops::linear::{Algorithm, variants};
use executorch_webgpu::options::Options;

use crate::common::model::Running;
use crate::common::q4::Q4;
use crate::common::{Data, Model, assert_close, tolerance, tolerance_of_halves};
use crate::linear::{product, q4_model};

pub const PROFILES: [Profile; 2] = [Profile::Full, Profile::Minimal];

/// Every algorithm that a device can be told to use.
pub fn forced(profile: Profile) -> Vec<Algorithm> {
    variants(Gpu::open(None, profile).unwrap().caps())
}

/// A device's own choice, and every algorithm that it can be told to use.
pub fn ways(profile: Profile) -> Vec<Option<Algorithm>> {
    std::iter::once(None).chain(forced(profile).into_iter().map(Some)).collect()
}

/// Tolerance of sums of `k` products; where cooperative matrices multiply, the factors are halves.
pub fn tolerance_on(running: &Running, k: u32) -> (f64, f64) {
    let halves = !running.program.gpu().caps().coop.is_empty();
    if halves { tolerance_of_halves(k as usize, 1.0) } else { tolerance(DType::F32, k as usize) }
}

/// A layer with activations between -1 and 1, and what it gives.
pub struct Layer {
    pub x: Data,
    pub want: Vec<f64>,
    pub model: Model,
    n: u32,
}

impl Layer {
    /// Up to `m` rows, with a bias if `n` is odd.
    pub fn new(m: u32, w: &Q4, n: u32) -> Layer {
        let k = w.dense.len() as u32 / n;
        let x = Data::random(DType::F32, &[m, k], (-1.0, 1.0), u64::from(m + n));
        let bias = (n % 2 == 1).then(|| Data::random(DType::F32, &[n], (-1.0, 1.0), u64::from(k)));
        let mut want = product(&x.values, &w.dense, (m, n, k));
        for (i, y) in want.iter_mut().enumerate() {
            *y += bias.as_ref().map_or(0.0, |bias| bias.values[i % n as usize]);
        }
        Layer { model: q4_model(&x, w, bias.as_ref(), &[m, n]), x, want, n }
    }

    pub fn load(&self, profile: Profile, force_gemm: Option<Algorithm>) -> Running {
        self.model.load_with(Options { force_gemm, ..Options::default() }, profile).unwrap()
    }

    /// The first `m` rows of activations.
    pub fn rows(&self, m: u32) -> Data {
        let k = self.x.dims[1];
        Data::f32(&[m, k], self.x.values[..(m * k) as usize].to_vec())
    }

    /// Runs the first `m` rows over poisoned memory.
    #[track_caller]
    pub fn check(&self, running: &mut Running, m: u32) {
        running.program.fill_activations(0xFF).unwrap();
        let got = running.run(&[&self.rows(m)]).unwrap();
        assert_close(&got[0], &[m, self.n], &self.want[..(m * self.n) as usize], tolerance_on(running, self.x.dims[1]));
    }
}
