//! 4-bit layers that add 16 products at a time in f16, as `enable_f16_accumulate_gemm` asks.

use executorch_webgpu::gpu::Profile;
use executorch_webgpu::options::Options;

use crate::common::q4;
use crate::q4_layer::{Layer, PROFILES};

/// On every device: cooperative matrices, which sum in f32, are not used.
fn half_sums() -> Options {
    Options { enable_f16_accumulate_gemm: true, force_f32_gemm: true, ..Options::default() }
}

fn run(layer: &Layer, options: Options, profile: Profile) -> Vec<f64> {
    layer.model.load_with(options, profile).unwrap().run(&[&layer.x]).unwrap().remove(0).values
}

/// The largest error, and the root mean squares of the errors and of the results.
fn errors(got: &[f64], want: &[f64]) -> (f64, f64, f64) {
    let errors: Vec<f64> = got.iter().zip(want).map(|(a, b)| (a - b).abs()).collect();
    let rms = |numbers: &[f64]| (numbers.iter().map(|x| x * x).sum::<f64>() / numbers.len() as f64).sqrt();
    (errors.iter().copied().fold(0.0, f64::max), rms(&errors), rms(want))
}

#[test]
fn their_error_grows_with_the_root_of_k() {
    for k in [64, 256, 2048, 8192] {
        for group in [8, 32, 64, k] {
            let layer = Layer::new(33, &q4::random(70, k, group, 1), 70);
            let (most, error, size) = errors(&run(&layer, half_sums(), Profile::Full), &layer.want);
            println!("K {k}, groups of {group}: {most:.1e} at most, {error:.1e} of {size:.2}");
            assert!(most <= 2e-4 * f64::from(k).sqrt(), "K {k}, groups of {group}: {most}");
            assert!(error <= 1e-3 * size, "K {k}, groups of {group}: {error} of {size}");
            assert!(error >= 1e-4 * size, "K {k}, groups of {group}: {error} of {size} is no f16");
        }
    }
}

#[test]
fn layers_of_language_models_stay_within_it() {
    for (m, k, n) in [(96, 2048, 256), (128, 8192, 2048)] {
        let layer = Layer::new(m, &q4::random(n, k, 32, 2), n);
        let (most, error, size) = errors(&run(&layer, half_sums(), Profile::Full), &layer.want);
        assert!(most <= 2e-4 * f64::from(k).sqrt() && error <= 1e-3 * size, "K {k}: {most}, {error} of {size}");
    }
}

#[test]
fn they_are_off_by_default_and_without_f16_and_for_few_rows() {
    assert!(!Options::default().enable_f16_accumulate_gemm);
    let (many, few) = (Layer::new(20, &q4::random(24, 256, 32, 3), 24), Layer::new(8, &q4::random(24, 256, 32, 4), 24));
    let exact = || Options { force_f32_gemm: true, ..Options::default() };
    for (layer, profile, same) in [
        (&many, Profile::Full, false),
        (&many, Profile::Minimal, true),
        (&few, Profile::Full, true),
        (&few, Profile::Minimal, true),
    ] {
        assert_eq!(run(layer, half_sums(), profile) == run(layer, exact(), profile), same, "{profile:?}");
    }
    for profile in PROFILES {
        many.check(&mut many.load(profile, None), 20);
    }
}
