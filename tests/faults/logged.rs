//! What the log says when a device does not do what was asked.

use std::sync::Mutex;

use executorch_webgpu::gpu::{Gpu, Profile};
use executorch_webgpu::ops::linear::only_f32_sums;
use executorch_webgpu::options::Options;

use crate::child::{alone, is_child, output};
use crate::seeds;

/// Names the folder of compiled pipelines to the processes of a test.
const DIRECTORY: &str = "ETWGPU_TEST_PIPELINES";

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
fn a_cache_in_f16_is_named_where_the_device_has_none() {
    alone("logged::a_cache_in_f16_is_named_where_the_device_has_none", &[], || {
        log::set_logger(&Kept).unwrap();
        log::set_max_level(log::LevelFilter::Warn);
        for profile in [Profile::Full, Profile::Minimal] {
            let has_halves = Gpu::open(None, profile).unwrap().caps().f16;
            let results = [false, true].map(|enable_f16_kv_cache| {
                LINES.lock().unwrap().clear();
                let options = Options { enable_f16_kv_cache, ..Options::default() };
                let mut running = seeds::decoder().load_with(options, profile).unwrap();
                let lines = LINES.lock().unwrap();
                let named = lines.iter().any(|line| line.contains("enable_f16_kv_cache: the device has no shader-f16"));
                assert_eq!(named, enable_f16_kv_cache && !has_halves, "{profile:?}: {lines:?}");
                let inputs = seeds::decoder_inputs(4, 0);
                running.run(&inputs.iter().collect::<Vec<_>>()).unwrap()
            });
            assert_eq!(results[0] == results[1], !has_halves, "{profile:?}");
            let mut default = seeds::decoder().load_with(Options::default(), profile).unwrap();
            let inputs = seeds::decoder_inputs(4, 0);
            assert_eq!(default.run(&inputs.iter().collect::<Vec<_>>()).unwrap(), results[0], "{profile:?}");
        }
    });
}

/// A second process takes the file that the first wrote; files that are not whole or not ours are named and replaced.
#[test]
fn pipelines_are_kept_on_disk_and_broken_files_are_named() {
    let directory = std::env::temp_dir().join(format!("etwgpu-pipelines-{}", std::process::id()));
    let name = "logged::pipelines_are_kept_on_disk_and_broken_files_are_named";
    if is_child() {
        log::set_logger(&Kept).unwrap();
        log::set_max_level(log::LevelFilter::Warn);
        let pipeline_cache_dir = std::env::var(DIRECTORY).ok();
        let mut running =
            seeds::decoder().load_with(Options { pipeline_cache_dir, ..Options::default() }, Profile::Full).unwrap();
        let inputs = seeds::decoder_inputs(4, 0);
        println!("\nresult {:?}", running.run(&inputs.iter().collect::<Vec<_>>()).unwrap()[0].bytes());
        println!("log {:?}", LINES.lock().unwrap());
        return;
    }
    if !Gpu::open(None, Profile::Full).unwrap().caps().pipeline_cache {
        println!("skipped: the device has no pipeline cache");
        return;
    }
    let run = || {
        let output = output(name, &[(DIRECTORY, directory.to_str().unwrap())]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}");
        let line = |start| text.lines().find(|line: &&str| line.starts_with(start)).unwrap().to_string();
        let files = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
        let files: Vec<_> = files.map(|path| (std::fs::read(&path).unwrap(), path)).collect();
        (line("result "), line("log "), files)
    };
    let first = run();
    let (kept, path) = first.2[0].clone();
    let second = run();
    for (result, log, files) in [&first, &second] {
        assert!(*result == first.0 && files.len() == 1 && !log.contains("pipeline cache"), "{log}");
    }
    let half = kept[..kept.len() / 2].to_vec();
    let flipped: Vec<u8> = kept.iter().enumerate().map(|(i, &b)| if i == kept.len() - 9 { !b } else { b }).collect();
    for broken in [&b"some text"[..], b"", &half, &flipped] {
        std::fs::write(&path, broken).unwrap();
        let (result, log, files) = run();
        assert_eq!(result, first.0);
        assert!(log.contains("is no pipeline cache, or not a whole one"), "{log}");
        assert_ne!(files[0].0, broken, "the file is replaced");
    }
    std::fs::remove_dir_all(&directory).unwrap();
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
