//! Graphs whose bytes are sound and whose meaning is not.

use executorch_webgpu::error::Error;
use executorch_webgpu::graph::{DType::F32, Value};
use executorch_webgpu::payload::parse;

use crate::common::Model;
use crate::common::writer::Entry;
use crate::seeds;

#[track_caller]
fn assert_refused(model: &Model, word: &str) {
    let bytes = model.payload.write();
    let error = parse(&bytes).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Payload(_)) && text.contains(word), "{text:?} lacks {word:?}");
}

/// The smallest model after a change: values 0 and 1 are input and output of its only call.
fn changed<T>(change: impl FnOnce(&mut Model) -> T) -> Model {
    let mut m = seeds::smallest();
    change(&mut m);
    m
}

#[test]
fn ids_out_of_range() {
    for id in [2, 1000, i32::MAX as usize, usize::MAX] {
        let word = if id == usize::MAX { "negative" } else { "there are 2" };
        assert_refused(&changed(|m| m.payload.calls[0].1[0] = id), word);
        assert_refused(&changed(|m| m.payload.calls[0].1[1] = id), word);
        assert_refused(&changed(|m| m.payload.inputs.push(id)), "there are 2");
        assert_refused(&changed(|m| m.payload.outputs.push(id)), "there are 2");
        let word = if id == usize::MAX { "negative" } else { "a list item" };
        assert_refused(&changed(|m| m.list(&[id.wrapping_add(usize::from(id == 2))])), word);
    }
}

#[test]
fn values_read_before_they_are_defined() {
    assert_refused(&changed(|m| m.payload.inputs.clear()), "before it is defined");
    assert_refused(&changed(|m| m.payload.calls[0].1.swap(0, 1)), "before it is defined");
    assert_refused(&changed(|m| m.payload.calls.clear()), "never defined");
    let cycle = changed(|m| {
        let y = m.tensor(F32, &[2, 3]);
        m.op("aten.neg.default", &[y, y]);
    });
    assert_refused(&cycle, "before it is defined");
    let crossed = changed(|m| {
        let [a, b] = [0; 2].map(|_| m.tensor(F32, &[2, 3]));
        m.op("aten.neg.default", &[a, b]);
        m.op("aten.neg.default", &[b, a]);
    });
    assert_refused(&crossed, "before it is defined");
    let inside_a_list = changed(|m| {
        let (a, zero, y) = (m.tensor(F32, &[2, 3]), m.int(0), m.tensor(F32, &[2, 3]));
        let list = m.list(&[0, a]);
        m.op("aten.cat.default", &[list, zero, y]);
    });
    assert_refused(&inside_a_list, "before it is defined");
}

#[test]
fn lists_that_contain_lists_or_themselves() {
    assert_refused(&changed(|m| m.list(&[2])), "list of lists");
    let deep = changed(|m| (0..100).fold(0, |inner, _| m.list(&[inner])));
    assert_refused(&deep, "list of lists");
}

#[test]
fn inputs_and_outputs_that_make_no_sense() {
    assert_refused(&changed(|m| m.payload.inputs.push(0)), "listed twice");
    for entry in [Entry::Null, Entry::Int(3), Entry::Text("x".into()), Entry::Ints(vec![1]), Entry::List(vec![0])] {
        let add = |m: &mut Model| m.add(entry.clone());
        assert_refused(
            &changed(|m| {
                let id = add(m);
                m.payload.inputs.push(id)
            }),
            "neither a tensor nor a SymInt",
        );
        assert_refused(
            &changed(|m| {
                let id = add(m);
                m.payload.outputs.push(id)
            }),
            "never defined",
        );
    }
    let twice = changed(|m| {
        let list = m.list(&[1, 1]);
        m.payload.calls[0].1[1] = list;
    });
    assert_refused(&twice, "twice");
}

#[test]
fn tensors_too_large_to_count() {
    for dims in [&[1 << 16, 1 << 15][..], &[u32::MAX], &[u32::MAX; 8], &[0, u32::MAX], &[i32::MAX as u32, 2]] {
        assert_refused(&changed(|m| m.tensor(F32, dims)), "2^31 - 1 elements");
    }
    for rank in [9, 64, 10_000] {
        assert_refused(&changed(|m| m.tensor(F32, &vec![1; rank])), &format!("rank {rank}"));
    }
    parse(&changed(|m| m.tensor(F32, &[i32::MAX as u32])).payload.write()).unwrap();
}

#[test]
fn calls_without_arguments() {
    assert_refused(&changed(|m| m.op("aten.relu.default", &[])), "no arguments");
    let error = changed(|m| m.op("aten.relu.default", &[0])).load().err().unwrap();
    assert!(error.to_string().contains("aten.relu.default"), "{error}");
}

#[test]
fn missing_operators_are_listed_all_at_once() {
    let model = changed(|m| {
        let (y, three) = (m.tensor(F32, &[2, 3]), m.int(3));
        m.op("aten.unheard_of.default", &[0, three, y]);
        m.op("custom.other.out", &[0, 1, y]);
        m.op("aten.unheard_of.default", &[y, three, y]);
    });
    let error = model.load().err().unwrap();
    let text = error.to_string();
    let words = [
        "aten.unheard_of.default, custom.other.out is not supported",
        "aten.unheard_of.default(float32[2, 3], 3) -> float32[2, 3];",
        "custom.other.out(float32[2, 3], float32[2, 3]) -> float32[2, 3];",
        "operator_blocklist",
    ];
    assert!(matches!(error, Error::Unsupported { .. }) && words.iter().all(|word| text.contains(word)), "{text}");
}

#[test]
fn lists_of_64_bit_numbers_lie_at_any_multiple_of_four() {
    for strings in 0..4 {
        let lists =
            [Entry::Ints(vec![]), Entry::Doubles(vec![]), Entry::Ints(vec![i64::MIN, -2]), Entry::Doubles(vec![-0.5])];
        let model = changed(|m| {
            for entry in (0..strings).map(|_| Entry::Text("abcd".into())).chain(lists) {
                m.add(entry);
            }
        });
        let graph = parse(&model.payload.write()).unwrap();
        let read =
            [Value::Ints(vec![]), Value::Doubles(vec![]), Value::Ints(vec![i64::MIN, -2]), Value::Doubles(vec![-0.5])];
        assert_eq!(graph.values[2 + strings..], read);
    }
}
