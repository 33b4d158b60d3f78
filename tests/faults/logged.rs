//! What the log says when a device does not do what was asked.

use std::sync::Mutex;

use executorch_webgpu::gpu::{Gpu, Profile};
use executorch_webgpu::ops::linear::only_f32_sums;
use executorch_webgpu::options::Options;

use crate::child::alone;
use crate::seeds;

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Kept;

impl log::Log for Kept {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        LINES.lock().unwrap().push(record.args().to_string());
    }

    fn flush(&self) {}
}

#[test]
fn an_f16_accumulation_that_is_not_followed_is_named() {
    alone("logged::an_f16_accumulation_that_is_not_followed_is_named", &[], || {
        log::set_logger(&Kept).unwrap();
        log::set_max_level(log::LevelFilter::Warn);
        for profile in [Profile::Full, Profile::Minimal] {
            let caps = Gpu::open(None, profile).unwrap().caps().clone();
            for enable_f16_accumulate_gemm in [false, true] {
                LINES.lock().unwrap().clear();
                let options = Options { enable_f16_accumulate_gemm, ..Options::default() };
                seeds::decoder().load_with(options, profile).unwrap();
                let lines = LINES.lock().unwrap();
                let named = lines.iter().any(|line| line.starts_with("enable_f16_accumulate_gemm: "));
                let matrices = !only_f32_sums(&caps);
                let followed = caps.f16 && matrices;
                assert_eq!(named, enable_f16_accumulate_gemm && !followed, "{profile:?}: {lines:?}");
            }
        }
        let lines = LINES.lock().unwrap();
        assert!(lines.iter().any(|line| line.contains("no shader-f16")), "{lines:?}");
    });
}

#[test]
fn the_algorithm_of_each_layer_is_named() {
    alone("logged::the_algorithm_of_each_layer_is_named", &[], || {
        log::set_logger(&Kept).unwrap();
        log::set_max_level(log::LevelFilter::Info);
        seeds::decoder().load().unwrap();
        let lines = LINES.lock().unwrap();
        let named = |line: &&String| line.starts_with("products: ") && line.contains(": gemv");
        assert!(lines.iter().any(|line| named(&line)), "{lines:?}");
    });
}
