//! Constants that are not there, too short, or elsewhere: refused at load with their name, and nothing stays behind.

use executorch_webgpu::error::Error;
use executorch_webgpu::gpu::{MemoryKind, Profile};
use executorch_webgpu::graph::DType::{self, F32, F64, I32, I64, U8};
use executorch_webgpu::options::Options;

use crate::common::writer::{Bytes, Entry};
use crate::common::{Data, Model, assert_close};
use crate::{heap, seeds};

/// `x + constant` over a constant of `dims` that lies at `place`.
fn model(place: Bytes, dtype: DType, dims: &[u32]) -> Model {
    let mut m = Model::new();
    let x = m.input(dtype, dims);
    m.payload.constants.push(place);
    let constant = m.add(Entry::Tensor { dtype, dims: dims.to_vec(), constant: 0 });
    let (one, y) = (m.int(1), m.tensor(dtype, dims));
    m.op("aten.add.Tensor", &[x, constant, one, y]);
    m.output(y);
    m
}

#[track_caller]
fn assert_refused(model: &Model, words: &[&str]) {
    for profile in [Profile::Full, Profile::Minimal] {
        let error = model.load_with(Options::default(), profile).err().unwrap();
        let text = error.to_string();
        let kind = matches!(error, Error::Data(_) | Error::Payload(_));
        assert!(kind && words.iter().all(|word| text.contains(word)), "{text:?} lacks some of {words:?}");
    }
}

#[test]
fn a_key_that_is_missing_or_short_is_named() {
    let mut m = model(Bytes::Named("some key".into()), F32, &[5]);
    assert_refused(&m, &["some key"]);
    for len in [0, 1, 19] {
        m.named.insert("some key".into(), vec![0; len]);
        assert_refused(&m, &["some key", &format!("{len} bytes"), "float32 [5]", "20"]);
    }
    m.named.insert("some key".into(), vec![0; 64]);
    m.load().unwrap();
    assert_refused(&model(Bytes::Named(String::new()), F32, &[5]), &["neither a key nor an offset"]);
}

#[test]
fn a_large_weight_is_never_held_twice() {
    const SIZE: usize = 64 << 20;
    /// A piece of a constant on its way to the device, and what a program costs.
    const PIECE: usize = 17 << 20;
    let capped = Profile::Capped { binding: 20 << 20, buffer: 20 << 20 };
    for (dtype, dims, profile) in
        [(U8, [1 << 14, 1 << 12], Profile::Full), (U8, [1 << 14, 1 << 12], capped), (F32, [1 << 12, 1 << 12], capped)]
    {
        let (mut m, k) = (Model::new(), dims[1] * if dtype == U8 { 2 } else { 1 });
        let x = m.input(F32, &[1, k]);
        let weight = m.constant_bytes("weight", dtype, &dims, vec![0; SIZE]);
        let (none, y) = (m.null(), m.tensor(F32, &[1, dims[0]]));
        if dtype == U8 {
            let scales = m.constant_bytes("scales", F32, &[k / 32, dims[0]], vec![0; SIZE / 4]);
            let group = m.int(32);
            m.op("et_vk.linear_q4gsw.default", &[x, weight, scales, group, none, y]);
        } else {
            m.op("aten.linear.default", &[x, weight, none, y]);
        }
        m.output(y);
        let (running, held) = heap::most(|| m.load_with(Options::default(), profile).unwrap());
        assert!(running.program.memory().of(MemoryKind::Weights) >= SIZE as u64);
        println!("{profile:?}: {held} bytes of host memory for {SIZE}");
        assert!(held < PIECE, "{profile:?}: {held} bytes of host memory for {SIZE}");
    }
}

#[test]
fn a_short_cache_is_named_whatever_it_is_kept_in() {
    let mut m = seeds::decoder();
    let cache = m.named.iter().max_by_key(|(_, bytes)| bytes.len()).map(|(key, _)| key.clone()).unwrap();
    m.named.get_mut(&cache).unwrap().pop();
    for half in [false, true] {
        let options = Options { enable_f16_kv_cache: half, ..Options::default() };
        let text = m.load_with(options, Profile::Full).err().unwrap().to_string();
        assert!(text.contains(&cache) && text.contains("1023 bytes") && text.contains("1024"), "{text}");
    }
}

#[test]
fn inline_bytes_outside_the_data_are_refused() {
    let at = |offset, length| {
        let mut m = model(Bytes::Inline { offset, length }, F32, &[5]);
        m.payload.data = (0..32).collect();
        m
    };
    for (offset, length) in [(13, 20), (33, 0), (0, 33), (32, 1), (u64::MAX - 1, 1), (1 << 40, 20), (4, u64::MAX - 3)] {
        assert_refused(&at(offset, length), &["inline constant", &offset.to_string(), "32 bytes of data"]);
    }
    assert_refused(&at(16, 16), &["inline constant has 16 bytes", "20"]);
    assert_refused(&at(32, 0), &["empty constant has 0 bytes", "20"]);
    for (offset, length) in [(0, 20), (12, 20), (5, 27), (8, 0)] {
        let x = Data::f32(&[5], vec![0.0; 5]);
        let bytes: Vec<u8> = (offset as u8..offset as u8 + 20).collect();
        let want = Data::from_bytes(F32, &[5], &bytes).values;
        at(offset, length).check(&[&x], |out| assert_close(&out[0], &[5], &want, (0.0, 0.0)));
    }
}

#[test]
fn constants_that_do_not_exist_are_refused() {
    for index in [1, 7, i32::MAX] {
        let mut m = model(Bytes::Named("key".into()), F32, &[5]);
        m.payload.values[1] = Entry::Tensor { dtype: F32, dims: vec![5], constant: index };
        assert_refused(&m, &[&format!("constant {index}"), "there are 1"]);
    }
    let mut m = model(Bytes::Named("key".into()), F32, &[5]);
    m.payload.values[0] = Entry::Tensor { dtype: F32, dims: vec![5], constant: 0 };
    assert_refused(&m, &["input", "is a constant"]);
}

#[test]
fn a_constant_without_elements_needs_no_bytes() {
    let m = model(Bytes::Inline { offset: 0, length: 0 }, F32, &[0, 3]);
    m.check(&[&Data::f32(&[0, 3], vec![])], |out| assert_eq!(out[0].dims, [0, 3]));
}

/// Two tensors over the same bytes: one longer than the other, or of another type. Each is what its own type says.
#[test]
fn tensors_that_share_a_key_keep_their_own_types_and_lengths() {
    let bytes: Vec<u8> = (1..=6i64).flat_map(i64::to_le_bytes).collect();
    let views = [(I64, 2u32), (I64, 6), (I32, 12), (I32, 3), (F64, 6), (F32, 12), (F32, 1)];
    let mut m = Model::new();
    m.named.insert("shared".into(), bytes.clone());
    for (dtype, count) in views {
        m.payload.constants.push(Bytes::Named("shared".into()));
        let constant = m.payload.constants.len() as i32 - 1;
        let id = m.add(Entry::Tensor { dtype, dims: vec![count], constant });
        m.output(id);
    }
    m.check(&[], |out| {
        for (found, (dtype, count)) in out.iter().zip(views) {
            let own = Data::from_bytes(dtype, &[count], &bytes[..count as usize * dtype.size()]);
            let held = if dtype == F64 { Data::new(F32, &[count], own.values).values } else { own.values };
            assert_eq!((&found.dims, &found.values), (&vec![count], &held), "{dtype} [{count}]");
        }
    });
}

#[test]
fn prepacking_needs_a_constant_of_the_same_form() {
    let pack = |from: Entry, to: Entry| {
        let mut m = model(Bytes::Named("key".into()), F32, &[5]);
        m.named.insert("key".into(), vec![0; 20]);
        let (from, to) = (m.add(from), m.add(to));
        m.op("et_vk.prepack.default", &[from, to]);
        m.output(to);
        m.load().err().unwrap().to_string()
    };
    let tensor = |dims: &[u32], constant| Entry::Tensor { dtype: F32, dims: dims.to_vec(), constant };
    let double = Entry::Tensor { dtype: F64, dims: vec![5], constant: -1 };
    for to in [tensor(&[6], -1), tensor(&[1, 5], -1), double, Entry::SymInt] {
        let text = pack(tensor(&[5], 0), to);
        assert!(text.contains("et_vk.prepack.default"), "{text}");
    }
    let mut m = model(Bytes::Named("key".into()), F32, &[5]);
    let y = m.tensor(F32, &[5]);
    m.op("et_vk.prepack.default", &[0, y]);
    let text = m.load().err().unwrap().to_string();
    assert!(text.contains("the source must be a constant"), "{text}");
}
