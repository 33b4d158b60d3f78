//! 4-bit layers of the sizes that language models have.

use executorch_webgpu::gpu::Profile;

use crate::common::{Data, assert_close, q4};
use crate::linear::{product, q4_model};
use crate::q4_layer::{Layer, tolerance_on};

/// The numbers from -8/16 to 8/16 in turn. Rows that are 17 apart are equal.
fn ramp(m: u32, k: u32) -> Data {
    Data::f32(&[m, k], (0..m * k).map(|i| (f64::from(i % 17) - 8.0) / 16.0).collect())
}

fn check(m: u32, k: u32, n: u32, group: u32) {
    let w = q4::random(n, k, group, u64::from(n));
    let x = ramp(m, k);
    let period = m.min(17);
    let want = product(&x.values[..(period * k) as usize], &w.dense, (period, n, k));
    let want: Vec<f64> = want.iter().copied().cycle().take((m * n) as usize).collect();
    let mut running = q4_model(&x, &w, None, &[m, n]).load().unwrap();
    let got = running.run(&[&x]).unwrap();
    assert_close(&got[0], &[m, n], &want, tolerance_on(&running, k));
}

#[test]
fn one_row() {
    for (k, n) in [(2048, 2048), (2048, 512), (2048, 8192), (8192, 2048)] {
        check(1, k, n, 32);
    }
}

#[test]
fn a_prompt() {
    for (m, k, n, group) in [
        (96, 2048, 256, 32),
        (96, 2048, 256, 64),
        (96, 2048, 256, 8),
        (70, 1024, 136, 32),
        (128, 2048, 8192, 32),
        (128, 8192, 2048, 32),
        (130, 4096, 2056, 32),
    ] {
        check(m, k, n, group);
    }
}

/// One program at lengths around a tile's edges, down to one row and up again.
#[test]
fn prompts_of_changing_length() {
    for (k, n, lengths) in
        [(2048, 512, &[512, 511, 508, 128, 127, 1, 512][..]), (8192, 256, &[512, 127, 1]), (2048, 1032, &[511, 128, 1])]
    {
        let w = q4::random(n, k, 64, u64::from(n));
        let x = ramp(512, k);
        let want = product(&x.values[..(17 * k) as usize], &w.dense, (17, n, k));
        let mut running = q4_model(&x, &w, None, &[512, n]).load().unwrap();
        for &m in lengths {
            let rows = Data::f32(&[m, k], x.values[..(m * k) as usize].to_vec());
            let want: Vec<f64> = want.iter().copied().cycle().take((m * n) as usize).collect();
            running.program.fill_activations(0xFF).unwrap();
            assert_close(&running.run(&[&rows]).unwrap()[0], &[m, n], &want, tolerance_on(&running, k));
        }
    }
}

#[test]
fn a_long_prompt() {
    for n in [512, 2048] {
        check(4096, 2048, n, 32);
    }
}

#[test]
#[ignore = "takes a CPU a minute"]
fn a_very_long_prompt() {
    for n in [512, 2048] {
        check(8192, 2048, n, 32);
    }
}

#[test]
fn vocabularies() {
    for (n, rows, padded) in [
        (32_001, 32_008, 32_064),
        (49_152, 49_152, 49_152),
        (128_256, 128_256, 128_256),
        (151_936, 151_936, 151_936),
        (262_144, 262_144, 262_144),
    ] {
        let layer = Layer::new(2, &q4::padded((n, 16), 16, (rows, padded), 1), n);
        for (profile, m) in [(Profile::Full, 2), (Profile::Full, 1), (Profile::Minimal, 1)] {
            layer.check(&mut layer.load(profile, None), m);
        }
    }
}
