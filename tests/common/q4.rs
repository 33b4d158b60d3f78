//! 4-bit groupwise weights in the payload's packing, and the numbers they stand for.

use executorch_webgpu::graph::DType;

use super::data::{Data, Rng};

pub struct Q4 {
    pub packed: Data,
    pub scales: Data,
    pub group: u32,
    /// `[n, k]`
    pub dense: Vec<f64>,
}

/// Random weights `[n, k]`; `k` is padded to a multiple of 8 with zeros and the scales' width to a multiple of 4 with NaN.
pub fn random(n: u32, k: u32, group: u32, seed: u64) -> Q4 {
    padded((n, k), group, (n, n.next_multiple_of(4)), seed)
}

/// Random weights `[n, k]` of which there are `rows` packed rows, whose scales are all NaN beyond n, and `padded` scales a group.
pub fn padded((n, k): (u32, u32), group: u32, (rows, padded): (u32, u32), seed: u64) -> Q4 {
    let mut rng = Rng::new(seed);
    let (k8, groups) = (k.next_multiple_of(8), k.div_ceil(group));
    let mut scales = vec![f64::NAN; (groups * padded) as usize];
    for g in 0..groups {
        for column in 0..n {
            scales[(g * padded + column) as usize] = rng.uniform(0.005, 0.02);
        }
    }
    let scales = Data::f32(&[groups, padded], scales);
    let mut packed = vec![0x88u8; (rows * k8 / 2) as usize];
    let mut dense = vec![0.0; (n * k) as usize];
    for row in 0..n {
        for column in 0..k {
            let nibble = rng.below(16) as u8;
            let byte = &mut packed[(row * k8 / 2 + column / 2) as usize];
            *byte = if column % 2 == 0 { *byte & 0xF0 | nibble } else { *byte & 0x0F | nibble << 4 };
            let scale = scales.values[(column / group * padded + row) as usize];
            dense[(row * k + column) as usize] = (f64::from(nibble) - 8.0) * scale;
        }
    }
    let packed = Data::new(DType::U8, &[rows, k8 / 2], packed.into_iter().map(f64::from).collect());
    Q4 { packed, scales, group, dense }
}
