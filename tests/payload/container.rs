//! The bytes around the graph: header, sections, FlatBuffer.

use executorch_webgpu::error::Error;
use executorch_webgpu::payload::parse;

use crate::common::writer::wrap;
use crate::seeds;

#[track_caller]
fn assert_refused(bytes: &[u8], word: &str) {
    let error = parse(bytes).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Payload(_)) && text.contains(word), "{text:?} lacks {word:?}");
}

fn patched(at: usize, field: &[u8]) -> Vec<u8> {
    let mut bytes = seeds::smallest().payload.write();
    bytes[at..at + field.len()].copy_from_slice(field);
    bytes
}

#[test]
fn every_truncation_is_refused() {
    for bytes in [seeds::smallest().payload.write(), seeds::decoder().payload.write()] {
        let end = u32::from_le_bytes(bytes[18..22].try_into().unwrap()) as usize;
        assert!(parse(&bytes[..end]).is_ok());
        for len in 0..end {
            assert_refused(&bytes[..len], if len < 30 { "fewer than the 30" } else { "sections do not fit" });
        }
    }
}

#[test]
fn a_graph_cut_short_inside_its_section_never_panics() {
    let bytes = seeds::decoder().payload.write();
    let size = u32::from_le_bytes(bytes[14..18].try_into().unwrap()) as usize;
    let graph = &bytes[32..32 + size];
    for len in 1..size {
        assert!(parse(&wrap(&graph[..len], &[])).is_err(), "the first {len} of {size} bytes");
    }
    parse(&wrap(graph, &[])).unwrap();
}

#[test]
fn sections_outside_the_payload_are_refused() {
    assert_refused(&patched(4, b"VH01"), "VH01");
    assert_refused(&patched(8, &29u16.to_le_bytes()), "header 29");
    for at in [10, 14, 18] {
        assert_refused(&patched(at, &u32::MAX.to_le_bytes()), "4294967295");
    }
    assert_refused(&patched(10, &31u32.to_le_bytes()), "identifier");
    assert_refused(&patched(14, &0u32.to_le_bytes()), "graph 0");
    assert_refused(&patched(22, &u64::MAX.to_le_bytes()), "18446744073709551615");
    assert_refused(&patched(22, &4096u64.to_le_bytes()), "4096 bytes");
}

#[test]
fn a_root_that_points_elsewhere_is_refused() {
    assert_refused(&patched(36, b"VK01"), "VK00");
    for root in [0, 1, 3, 1 << 20, u32::MAX] {
        assert_refused(&patched(32, &u32::to_le_bytes(root)), "graph");
    }
    assert_refused(&[], "0 bytes");
    assert_refused(&[0; 4096], "magic");
    assert_refused(&[0xFF; 4096], "magic");
}

#[test]
fn a_payload_at_any_address_is_read() {
    let bytes = seeds::decoder().payload.write();
    let graph = parse(&bytes).unwrap();
    for shift in 1..16 {
        let shifted = [vec![0; shift], bytes.clone()].concat();
        assert_eq!(parse(&shifted[shift..]).unwrap(), graph);
    }
}
