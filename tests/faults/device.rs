//! Devices that are missing, lost or full.

use std::time::{Duration, Instant};

use executorch_webgpu::error::Error;
use executorch_webgpu::exec::{NoData, Program};
use executorch_webgpu::gpu::{self, BufferRange, Gpu, MemoryKind, Profile, adapter_available};
use executorch_webgpu::graph::DType::F32;
use executorch_webgpu::options::{OptionValue, Options};
use executorch_webgpu::shader::{Elem, Kernel};

use crate::child::alone;
use crate::common::model::Running;
use crate::common::{Data, Model};
use crate::{child, seeds};

/// Options that open a device which no other test shares, so that losing it hurts nobody.
fn own_device(name: &str) -> Options {
    Options { adapter: Some(name.into()), ..Options::default() }
}

fn load(options: &Options) -> Running {
    seeds::decoder().load_with(options.clone(), Profile::Minimal).unwrap()
}

fn step(running: &mut Running) -> Result<Vec<Data>, Error> {
    let inputs = seeds::decoder_inputs(4, 0);
    running.run(&inputs.iter().collect::<Vec<_>>())
}

#[test]
fn a_lost_device_is_an_error_and_a_new_load_works() {
    let options = own_device("0");
    let (mut first, mut second) = (load(&options), load(&options));
    let expected = step(&mut first).unwrap();
    first.program.gpu().destroy();
    for running in [&mut first, &mut second] {
        for _ in 0..2 {
            let error = step(running).unwrap_err();
            assert!(
                matches!(error, Error::Device(_)) && error.to_string().contains("load the program again"),
                "{error}"
            );
        }
    }
    let mut third = load(&options);
    assert_eq!(step(&mut third).unwrap(), expected);
    drop(first);
    assert_eq!(step(&mut third).unwrap(), expected);
    drop(second);
    assert_eq!(step(&mut load(&options)).unwrap(), expected);
}

#[test]
fn a_device_lost_between_and_during_calls_never_hangs_or_panics() {
    let options = own_device("00");
    for wait in 0..6 {
        let mut running = load(&options);
        step(&mut running).unwrap();
        let gpu = running.program.gpu().clone();
        let calls = std::thread::spawn(move || {
            let deadline = Instant::now() + Duration::from_secs(20);
            while Instant::now() < deadline {
                if let Err(error) = step(&mut running) {
                    return error;
                }
            }
            panic!("calls go on without a device");
        });
        std::thread::sleep(Duration::from_millis(wait * 3));
        gpu.destroy();
        let error = calls.join().unwrap();
        assert!(matches!(error, Error::Device(_)), "{error}");
    }
}

#[test]
fn a_device_lost_during_loads_is_an_error_or_nothing() {
    let options = own_device("000");
    for wait in 0..6 {
        let gpu = load(&options).program.gpu().clone();
        let loader = std::thread::spawn({
            let options = options.clone();
            move || {
                (0..4).map(|_| seeds::decoder().load_with(options.clone(), Profile::Minimal).err()).collect::<Vec<_>>()
            }
        });
        std::thread::sleep(Duration::from_millis(wait * 10));
        gpu.destroy();
        for error in loader.join().unwrap().into_iter().flatten() {
            assert!(matches!(error, Error::Device(_)), "{error}");
        }
    }
}

#[test]
fn an_adapter_that_is_not_there_is_an_option_error_that_lists_those_that_are() {
    let there = load(&Options::default()).program.gpu().name().to_string();
    // A number that is no index is not looked for among the digits of a name.
    let digit = there.chars().filter(char::is_ascii_digit).find(|&digit| digit > '4').map(String::from);
    for name in ["no such adapter", "99"].into_iter().chain(digit.as_deref()) {
        let error = seeds::smallest().load_with(own_device(name), Profile::Full).err().unwrap();
        let text = error.to_string();
        assert!(matches!(error, Error::Option(_)) && text.contains(name) && text.contains(&there), "{text}");
    }
    let part = there.split(' ').next().unwrap().to_uppercase();
    assert_eq!(load(&own_device(&part)).program.gpu().name(), there);
}

#[test]
fn without_a_driver_nothing_is_available_and_the_error_says_what_to_install() {
    let nowhere = [("VK_DRIVER_FILES", "/nowhere.json"), ("VK_ICD_FILENAMES", "/nowhere.json")];
    alone("device::without_a_driver_nothing_is_available_and_the_error_says_what_to_install", &nowhere, || {
        assert!(!adapter_available());
        for _ in 0..2 {
            let error = seeds::smallest().load().err().unwrap();
            let text = error.to_string();
            assert!(
                matches!(error, Error::Device(_)) && text.contains("no GPU adapter") && text.contains("install"),
                "{text}"
            );
        }
        assert!(!executorch_webgpu::ffi::etwgpu_is_available());
    });
    if !child::is_child() {
        assert!(adapter_available());
    }
}

#[test]
fn options_of_a_wrong_type_name_the_key() {
    let wrong = [
        ("enable_f16_kv_cache", OptionValue::Int(1)),
        ("enable_f16_accumulate_gemm", OptionValue::Str("true".into())),
        ("sdpa_query_tile", OptionValue::Bool(true)),
        ("adapter", OptionValue::Int(-1)),
    ];
    for (key, value) in wrong {
        let mut options = Options::default();
        let error = options.set(key, &value).unwrap_err();
        assert!(matches!(error, Error::Option(_)) && error.to_string().contains(key), "{error}");
        assert_eq!(options, Options::default());
    }
}

#[test]
fn a_tensor_above_the_largest_buffer_is_refused_by_name_before_anything_is_allocated() {
    let mut m = seeds::smallest();
    let big = m.tensor(F32, &[1 << 15, 1 << 15]);
    let x = m.payload.inputs[0];
    m.op("aten.expand_copy.default", &[x, x, big]);
    m.output(big);
    let error = Program::load_with(&m.payload.write(), &NoData, Options::default(), Profile::Minimal).err().unwrap();
    let text = error.to_string();
    let named = text.contains("float32[32768, 32768]") && text.contains("4294967296") && text.contains("268435456");
    assert!(matches!(error, Error::OutOfMemory(_)) && named, "{text}");
}

#[test]
fn an_error_of_the_graphics_api_is_an_error_of_the_call() {
    let gpu = Gpu::open(None, Profile::Minimal).unwrap();
    let buffer = gpu.buffer(MemoryKind::Scratch, 64, "test").unwrap();
    let kernel = Kernel::new(executorch_webgpu::shader::source(
        "copy_one",
        "
        struct Params { n: u32 }
        @compute @workgroup_size(1) fn main() { store_y(0u, load_x(0u) + f32(p.n) + f32(live(0u))); }
    ",
    ));
    let kernel = kernel.reads("x", Elem::F32).writes("y", Elem::F32);
    let pipeline = gpu.pipeline(&kernel).unwrap();
    let range = |offset, bytes| BufferRange { buffer: &buffer, offset, bytes };
    for wrong in [[range(0, 64), range(0, 128)], [range(0, 64), range(256, 16)], [range(4, 16), range(0, 16)]] {
        let error = gpu.bind(&pipeline, &wrong).err().unwrap();
        assert!(matches!(error, Error::Device(_)) && !error.to_string().is_empty(), "{error}");
    }
    assert!(gpu.bind(&pipeline, &[range(0, 16)]).is_err());
    gpu.check().unwrap();
    step(&mut load(&Options::default())).unwrap();
}

#[test]
fn a_kernel_that_does_not_compile_is_an_error_with_its_name() {
    let gpu = Gpu::open(None, Profile::Minimal).unwrap();
    let broken = Kernel::new(executorch_webgpu::shader::source("broken", "struct Params { n: u32 } fn main( {"));
    let error = gpu.pipeline(&broken).err().unwrap();
    assert!(matches!(error, Error::Internal(_)) && error.to_string().contains("kernel broken"), "{error}");
    gpu.check().unwrap();
}

/// Sixty results of 120 MiB.
fn hungry() -> Model {
    let mut m = Model::new();
    let x = m.input(F32, &[30 << 20]);
    for _ in 0..60 {
        let y = m.tensor(F32, &[30 << 20]);
        m.op("aten.neg.default", &[x, y]);
        m.output(y);
    }
    m
}

#[test]
fn memory_that_runs_out_is_an_error_and_smaller_programs_still_run() {
    let name = "device::memory_that_runs_out_is_an_error_and_smaller_programs_still_run";
    let device = load(&Options::default()).program.gpu().name().to_string();
    if !device.contains("llvmpipe") {
        println!("skipped: only a device that lives in host memory can be starved by a limit on it, found {device}");
        return;
    }
    child::alone_in(3 << 20, name, || {
        let mut running = load(&Options::default());
        let (expected, held) = (step(&mut running).unwrap(), gpu::memory().total());
        for _ in 0..2 {
            let error = hungry().load_with(Options::default(), Profile::Minimal).err().unwrap();
            let text = error.to_string();
            assert!(matches!(error, Error::OutOfMemory(_)) && text.contains("125829120 bytes"), "{text}");
            assert_eq!(gpu::memory().total(), held);
            assert_eq!(step(&mut running).unwrap(), expected);
        }
        assert_eq!(step(&mut load(&Options::default())).unwrap(), expected);
    });
}

/// A driver may leave destructors in a thread that asked it something; they must still be there when the thread ends.
#[test]
fn threads_that_looked_for_adapters_may_end() {
    for _ in 0..4 {
        let threads = [(); 4].map(|()| std::thread::spawn(executorch_webgpu::gpu::adapter_available));
        for thread in threads {
            assert!(thread.join().unwrap());
        }
    }
}
