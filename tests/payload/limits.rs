//! Devices that can do less: everything is refused by name and size before anything is allocated, or stays within.

use executorch_webgpu::error::{Error, Result};
use executorch_webgpu::gpu::Caps;
use executorch_webgpu::graph::DType::{F32, U8};
use executorch_webgpu::options::Options;
use executorch_webgpu::passes;
use executorch_webgpu::payload::parse;
use executorch_webgpu::plan::Plan;

use crate::common::{Data, Model, q4};
use crate::{exported, seeds, targets};

fn plan(model: &Model, caps: &Caps) -> Result<Plan> {
    let options = Options::default();
    Plan::new(passes::run(parse(&model.payload.write())?, caps, &options)?, caps, &options)
}

#[track_caller]
fn assert_refused(model: &Model, caps: &Caps, words: &[&str]) {
    let error = plan(model, caps).unwrap_err();
    let text = error.to_string();
    let kind = matches!(error, Error::Unsupported { .. } | Error::OutOfMemory(_));
    assert!(kind && words.iter().all(|word| text.contains(word)), "{text:?} lacks some of {words:?}");
}

#[test]
fn a_binding_that_is_too_large_is_refused_by_name_and_size() {
    let caps = Caps { max_binding: 1000, ..Caps::minimal() };
    let words = ["update", "sdpa", "float32[1, 16, 2, 8]", "1024 bytes", "one binding covers 1000"];
    assert_refused(&seeds::decoder(), &caps, &words[1..]);
    plan(&seeds::decoder(), &Caps { max_binding: 1024, ..caps }).unwrap();
}

#[test]
fn a_buffer_that_is_too_large_is_refused_by_name_and_size() {
    let caps = Caps { max_buffer: 1000, ..Caps::minimal() };
    assert_refused(&seeds::decoder(), &caps, &["float32[1, 16, 2, 8]", "1024 bytes", "1000"]);
    plan(&seeds::decoder(), &Caps { max_buffer: 1024, ..caps }).unwrap();
}

/// One row through a 4-bit layer, of which only the shapes exist.
fn vocabulary(n: u32, k: u32) -> Model {
    let mut m = Model::new();
    let x = m.input(F32, &[1, k]);
    let small = q4::random(4, 8, 8, 1);
    let (packed, scales) = (m.constant(&small.packed), m.constant(&small.scales));
    let (group, none) = (m.int(32), m.null());
    for (id, dtype, dims) in [(packed, U8, vec![n, k / 2]), (scales, F32, vec![k / 32, n])] {
        m.payload.values[id] = crate::common::writer::Entry::Tensor { dtype, dims, constant: i32::from(id == scales) };
    }
    let y = m.tensor(F32, &[1, n]);
    m.op("et_vk.linear_q4gsw.default", &[x, packed, scales, group, none, y]);
    m.output(y);
    m
}

#[test]
fn a_vocabulary_above_the_limit_takes_as_many_steps_as_bindings() {
    for (n, k, steps) in [(151_936, 2048, 2), (128_256, 4096, 2), (152_064, 3584, 3), (1 << 20, 4000, 16)] {
        let plan = plan(&vocabulary(n, k), &Caps::minimal()).unwrap();
        targets::verify_all(&plan, &Caps::minimal());
        assert_eq!(plan.probes[0].lowered[0].steps.len(), steps, "{n} x {k}");
    }
}

#[test]
fn a_row_above_the_limit_is_refused_by_name_and_size() {
    let caps = Caps { max_binding: 1 << 15, ..Caps::minimal() };
    assert_refused(
        &vocabulary(1000, 1 << 17),
        &caps,
        &["et_vk.linear_q4gsw", "uint8[1000, 65536]", "65536 bytes", "one binding covers 32768"],
    );
}

#[test]
fn an_exported_program_runs_within_any_limits_or_is_refused_by_name_and_size() {
    let mut ran = 0;
    for binding in (8..28).map(|bit| 1u64 << bit) {
        for (buffer, storage_alignment) in [(binding, 256), (4 * binding, 32), (1 << 28, 256)] {
            let caps = Caps { max_binding: binding, max_buffer: buffer, storage_alignment, ..Caps::minimal() };
            let options = Options::default();
            let graph = passes::run(parse(exported::payload()).unwrap(), &caps, &options).unwrap();
            match Plan::new(graph, &caps, &options) {
                Ok(plan) => {
                    targets::verify_all(&plan, &caps);
                    ran += 1;
                }
                Err(error) => {
                    let text = error.to_string();
                    let kind = matches!(error, Error::Unsupported { .. } | Error::OutOfMemory(_));
                    assert!(kind && text.contains(" bytes") && text.contains("[") && text.contains('%'), "{text}");
                }
            }
        }
    }
    assert!(ran > 20, "{ran} of 60 devices");
}

#[test]
fn too_many_bindings_are_refused() {
    let caps = Caps { max_storage_buffers: 2, ..Caps::minimal() };
    assert_refused(&seeds::decoder(), &caps, &["buffers, the device takes 2"]);
}

#[test]
fn more_groups_than_one_dimension_holds_are_folded() {
    for max_groups in [1, 2, 3, 7, 16, 64] {
        let caps = Caps { max_groups, ..Caps::minimal() };
        match plan(&seeds::decoder_with_bound(40, (2, 8), 64, 12), &caps) {
            Ok(plan) => targets::verify_all(&plan, &caps),
            Err(error) => assert!(error.to_string().contains("workgroups"), "{error}"),
        }
    }
}

#[test]
fn a_step_that_reads_and_writes_one_buffer_is_refused() {
    let mut m = Model::new();
    let cache = m.constant(&Data::f32(&[1, 8, 2, 4], vec![0.0; 64]));
    let (pos, out) = (m.int(0), m.tensor(F32, &[1, 8, 2, 4]));
    m.op("update_cache.default", &[cache, cache, pos, out]);
    m.output(cache);
    assert_refused(&m, &Caps::minimal(), &["update_cache.default", "reads and writes", "float32[1, 8, 2, 4]"]);
}
