//! Every algorithm for 4-bit layers, forced, at the sizes where one goes wrong.

use executorch_webgpu::gpu::Profile;
use executorch_webgpu::graph::DType;
use executorch_webgpu::options::Options;

use crate::common::{Data, assert_close, q4};
use crate::linear::{product, q4_model};
use crate::q4_layer::{Layer, PROFILES, forced, tolerance_on, ways};

#[test]
fn at_the_edges_of_their_tiles() {
    for profile in PROFILES {
        for way in forced(profile) {
            let (rows, columns) = way.tile();
            for (k, group) in [(40, 8), (96, 32)] {
                for n in [columns - 1, columns, columns + 1].into_iter().filter(|&n| n > 0) {
                    let layer = Layer::new(rows + 1, &q4::random(n, k, group, u64::from(n + k)), n);
                    let mut running = layer.load(profile, Some(way));
                    eprintln!("{profile:?} {way:?}, n {n}, k {k}");
                    for m in [rows + 1, rows, rows - 1].into_iter().filter(|&m| m > 0) {
                        layer.check(&mut running, m);
                    }
                }
            }
        }
    }
}

#[test]
fn at_primes() {
    for (m, k, n) in [(29, 37, 41), (13, 113, 89), (2, 7, 131)] {
        let layer = Layer::new(m, &q4::random(n, k, k, 1), n);
        for profile in PROFILES {
            ways(profile).into_iter().for_each(|way| layer.check(&mut layer.load(profile, way), m));
        }
    }
}

#[test]
fn over_sums_and_groups_of_every_length() {
    for k in [8, 16, 32, 96, 2056, 4128, 8192] {
        for group in [8, 12, 32, 64, 128, 256, k].into_iter().filter(|group| k % group == 0) {
            let layer = Layer::new(3, &q4::random(24, k, group, u64::from(k + group)), 24);
            for profile in PROFILES {
                ways(profile).into_iter().for_each(|way| layer.check(&mut layer.load(profile, way), 3));
            }
        }
    }
}

#[test]
fn over_widths_and_paddings_of_every_kind() {
    for (n, rows, padded) in
        [(8, 8, 8), (24, 24, 64), (136, 144, 160), (200, 200, 204), (513, 520, 516), (1000, 1000, 1024)]
    {
        let layer = Layer::new(9, &q4::padded((n, 64), 32, (rows, padded), 2), n);
        for profile in PROFILES {
            ways(profile).into_iter().for_each(|way| layer.check(&mut layer.load(profile, way), 9));
        }
    }
}

#[test]
fn a_row_does_not_depend_on_how_many_there_are() {
    let (k, n) = (128, 40);
    let layer = Layer::new(17, &q4::random(n, k, 32, 3), n);
    for profile in PROFILES {
        let mut alone = layer.load(profile, None);
        let row = |row: usize| Data::f32(&[1, k], layer.x.values[row * k as usize..][..k as usize].to_vec());
        let single: Vec<f64> = (0..17).flat_map(|r| alone.run(&[&row(r)]).unwrap()[0].values.clone()).collect();
        for way in ways(profile) {
            let mut running = layer.load(profile, way);
            for m in 1..=17 {
                let got = running.run(&[&layer.rows(m)]).unwrap();
                assert_close(&got[0], &[m, n], &single[..(m * n) as usize], tolerance_on(&running, k));
            }
        }
    }
}

#[test]
fn rows_of_any_magnitude_keep_their_accuracy() {
    let (m, k, n) = (21, 64, 24);
    let w = q4::random(n, k, 32, 4);
    let mut x = Data::random(DType::F32, &[m, k], (-1.0, 1.0), 5);
    for (row, scale) in [(0, 1e30), (2, 1e5), (3, 1e-30), (7, 0.0), (9, 65504.0), (11, 7e4), (20, 3e37)] {
        x.values[row * k as usize..][..k as usize].iter_mut().for_each(|v| *v *= scale);
    }
    // A row that holds the largest of numbers, and one whose neighbours' are the smallest.
    x.values[13 * k as usize + 5] = 3e38;
    x.values[14 * k as usize..][..k as usize].iter_mut().for_each(|v| *v *= 1e-30);
    let x = Data::f32(&[m, k], x.values);
    let want = product(&x.values, &w.dense, (m, n, k));
    let model = q4_model(&x, &w, None, &[m, n]);
    for profile in PROFILES {
        for force_gemm in ways(profile) {
            let options = Options { force_gemm, ..Options::default() };
            let got = model.load_with(options, profile).unwrap().run(&[&x]).unwrap();
            for (row, (got, want)) in got[0].values.chunks(n as usize).zip(want.chunks(n as usize)).enumerate() {
                let most = want.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
                for (a, b) in got.iter().zip(want) {
                    assert!((a - b).abs() <= 2e-3 * most, "{force_gemm:?}, row {row}: {a} instead of {b}");
                }
            }
        }
    }
}

#[test]
fn replays_are_identical() {
    let layer = Layer::new(9, &q4::random(33, 256, 64, 6), 33);
    for way in ways(Profile::Full) {
        let mut running = layer.load(Profile::Full, way);
        let first = running.run(&[&layer.x]).unwrap();
        for _ in 0..20 {
            running.program.fill_activations(0xFF).unwrap();
            assert_eq!(running.run(&[&layer.x]).unwrap(), first, "{way:?}");
        }
    }
}
