//! Operators in forms that do not exist: refused at load by name, with what was found.

use executorch_webgpu::graph::DType::{self, F16, F32, I32, U8};

use crate::common::Model;
use crate::common::writer::Entry;
use crate::seeds;

fn tensor(dtype: DType, dims: &[u32]) -> Entry {
    Entry::Tensor { dtype, dims: dims.to_vec(), constant: -1 }
}

fn cache(dims: &[u32]) -> Entry {
    Entry::Tensor { dtype: F32, dims: dims.to_vec(), constant: 1 }
}

/// The decoder with argument `place` of operator `op` replaced, and its error at load. A result is replaced for all.
#[track_caller]
fn refusal(op: &str, place: usize, entry: Entry) -> String {
    let mut m = seeds::decoder();
    let call = m.payload.calls.iter().position(|(name, _)| name.starts_with(op)).unwrap();
    let args = m.payload.calls[call].1.clone();
    if place + 1 == args.len() {
        m.payload.values[args[place]] = entry;
    } else {
        let is_input = matches!(entry, Entry::Tensor { constant: -1, .. });
        let id = m.add(entry);
        m.payload.inputs.extend(is_input.then_some(id));
        m.payload.calls[call].1[place] = id;
    }
    m.load().err().unwrap_or_else(|| panic!("{op} takes another argument {place}")).to_string()
}

#[track_caller]
fn assert_refused(op: &str, place: usize, entry: Entry, word: &str) {
    let text = refusal(op, place, entry);
    assert!(text.contains(op) && text.contains(word), "{text:?} lacks {word:?}");
}

#[test]
fn attention() {
    let op = "sdpa_with_kv_cache.default";
    assert_refused(op, 0, tensor(F32, &[1, 4, 2, 6]), "head size 6");
    assert_refused(op, 0, tensor(F32, &[2, 4, 2, 8]), "[2, 4, 2, 8]");
    assert_refused(op, 0, tensor(F32, &[1, 4, 3, 8]), "3 query heads");
    assert_refused(op, 0, tensor(F32, &[4, 8]), "[4, 8]");
    assert_refused(op, 0, tensor(I32, &[1, 4, 2, 8]), "int32");
    assert_refused(op, 1, tensor(F32, &[1, 4, 1, 8]), "[1, 4, 1, 8]");
    assert_refused(op, 2, tensor(F32, &[1, 3, 2, 8]), "[1, 3, 2, 8]");
    assert_refused(op, 3, cache(&[1, 16, 1, 8]), "[1, 4, 1, 8]");
    assert_refused(op, 3, cache(&[1, 16, 2, 4]), "[1, 16, 2, 4]");
    assert_refused(op, 4, cache(&[1, 15, 2, 8]), "[1, 15, 2, 8]");
    assert_refused(op, 5, Entry::Double(1.5), "1.5");
    assert_refused(op, 5, Entry::Null, "None");
    assert_refused(op, 7, tensor(F32, &[4, 16]), "a mask besides causality");
    assert_refused(op, 8, Entry::Double(0.5), "dropout");
    assert_refused(op, 9, Entry::Text("no".into()), "a bool");
    assert_refused(op, 10, Entry::Text("1".into()), "\"1\"");
    assert_refused(op, 11, tensor(U8, &[1, 4, 2, 8]), "uint8");
    assert_refused(op, 11, tensor(F32, &[1, 4, 2, 4]), "[1, 4, 2, 4]");
    let text = refusal(op, 5, Entry::Int(13));
    assert!(text.contains("13 with length 4 is outside 0..16"), "{text}");
}

#[test]
fn rotary_embeddings() {
    let op = "et_vk.apply_rotary_emb_hf.default";
    assert_refused(op, 0, tensor(F32, &[1, 4, 2, 7]), "[1, 4, 2, 7]");
    assert_refused(op, 0, tensor(F32, &[8]), "[8]");
    assert_refused(op, 0, tensor(U8, &[1, 4, 2, 8]), "uint8");
    assert_refused(op, 2, tensor(F32, &[16, 10]), "[16, 10]");
    assert_refused(op, 2, tensor(F32, &[16, 7]), "[16, 7]");
    assert_refused(op, 3, tensor(F32, &[3, 8]), "[3, 8]");
    assert_refused(op, 3, tensor(I32, &[16, 8]), "int32");
    assert_refused(op, 4, Entry::Text("first".into()), "first");
    let mut m = seeds::decoder();
    let turned = m.payload.calls.iter().find(|(name, _)| name == op).unwrap().1[5];
    let Entry::List(items) = m.payload.values[turned].clone() else { panic!("the results are no list") };
    m.payload.values[items[1]] = tensor(I32, &[1, 4, 2, 8]);
    let text = m.load().err().unwrap().to_string();
    assert!(text.contains(op) && text.contains("int32"), "{text}");
    let text = refusal(op, 4, Entry::Int(-1));
    assert!(text.contains("-1 with length 4"), "{text}");
}

#[test]
fn products_of_4_bits() {
    let op = "et_vk.linear_q4gsw.default";
    assert_refused(op, 0, tensor(F32, &[1, 4, 2, 9]), "uint8 [N, 8]");
    assert_refused(op, 0, tensor(F32, &[]), "rank 0");
    assert_refused(op, 1, tensor(F32, &[12, 4]), "float32 [12, 4]");
    assert_refused(op, 1, tensor(U8, &[12, 3]), "[12, 3]");
    assert_refused(op, 1, tensor(U8, &[11, 4]), "11 packed rows");
    assert_refused(op, 2, tensor(F32, &[1, 8]), "8 scales");
    assert_refused(op, 2, tensor(F32, &[12]), "[12]");
    assert_refused(op, 3, Entry::Int(0), "group size");
    assert_refused(op, 3, Entry::Int(-8), "group size");
    assert_refused(op, 3, Entry::Int(4), "do not cover");
    assert_refused(op, 3, Entry::Double(7.5), "7.5");
    assert_refused(op, 4, tensor(F16, &[11]), "[11]");
    assert_refused(op, 5, tensor(U8, &[1, 4, 2, 12]), "uint8");
    assert_refused(op, 5, tensor(F32, &[1, 3, 2, 12]), "[1, 3, 2, 12]");
}

/// `op(x [3, 8, 4], args.., y)`, which must be refused at load.
#[track_caller]
fn assert_all_refused(op: &str, args: &[Entry], dims: &[u32], word: &str) {
    let mut m = Model::new();
    let mut ids = vec![m.input(F32, &[3, 8, 4])];
    ids.extend(args.iter().map(|entry| m.add(entry.clone())).collect::<Vec<_>>());
    let y = m.tensor(F32, dims);
    ids.push(y);
    m.op(op, &ids);
    m.output(y);
    let text = m.load().err().unwrap().to_string();
    assert!(text.contains(op) && text.contains(word), "{text:?} lacks {word:?}");
}

#[test]
fn indices_that_are_no_integers() {
    let (one, half) = (Entry::Int(1), Entry::Double(0.5));
    assert_all_refused("aten.select_copy.int", &[one.clone(), half.clone()], &[3, 4], "0.5");
    assert_all_refused("aten.select_copy.int", &[half.clone(), one.clone()], &[3, 4], "0.5");
    assert_all_refused("aten.select_copy.int", &[one.clone(), Entry::Int(8)], &[3, 4], "8");
    assert_all_refused("aten.select_copy.int", &[Entry::Int(3), one.clone()], &[3, 4], "dimension 3");
    let slice = |start: Entry, end: Entry, step: Entry| [one.clone(), start, end, step];
    let (null, two) = (Entry::Null, Entry::Int(2));
    assert_all_refused("aten.slice_copy.Tensor", &slice(half.clone(), null.clone(), one.clone()), &[3, 8, 4], "0.5");
    assert_all_refused("aten.slice_copy.Tensor", &slice(null.clone(), half.clone(), one.clone()), &[3, 8, 4], "0.5");
    assert_all_refused("aten.slice_copy.Tensor", &slice(null.clone(), null.clone(), half), &[3, 8, 4], "0.5");
    assert_all_refused("aten.slice_copy.Tensor", &slice(null.clone(), null, two), &[3, 3, 4], "[3, 4, 4]");
}

#[test]
fn symbolic_numbers() {
    let mut m = Model::new();
    let (x, n, y) = (m.tensor(F32, &[2]), m.symint(), m.symint());
    m.payload.inputs.extend([n]);
    let zero = m.int(0);
    m.op("aten.full.default", &[zero, zero, x]);
    m.op("et_vk.select_as_symint.default", &[x, zero, zero, y]);
    m.output(y);
    let text = m.load().err().unwrap().to_string();
    assert!(text.contains("et_vk.select_as_symint.default") || text.contains("aten.full.default"), "{text}");
    for (op, place, entry, word) in [
        ("sym_size.int", 1, Entry::Int(4), "dimension 4"),
        ("sym_size.int", 1, Entry::Double(0.5), "0.5"),
        ("et_vk.select_as_symint.default", 2, Entry::Int(1), "index 1"),
        ("et_vk.select_as_symint.default", 1, Entry::Int(-2), "dimension -2"),
        ("add", 1, Entry::Text("x".into()), "\"x\""),
    ] {
        assert_refused(op, place, entry, word);
    }
}
