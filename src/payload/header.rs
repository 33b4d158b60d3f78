use std::ops::Range;

use crate::error::{Error, Result};

const HEADER_SIZE: usize = 30;

/// The sections of a payload, as byte ranges inside it.
#[derive(Debug, PartialEq)]
pub(super) struct Sections {
    pub graph: Range<usize>,
    pub data: Range<usize>,
}

/// Reads the VH00 header. All integers are little-endian and offsets count from the start of the payload.
pub(super) fn sections(bytes: &[u8]) -> Result<Sections> {
    if bytes.len() < HEADER_SIZE {
        let len = bytes.len();
        return Err(Error::Payload(format!("{len} bytes are fewer than the {HEADER_SIZE} of the header")));
    }
    if bytes.get(4..8) != Some(b"VH00") {
        let found = String::from_utf8_lossy(bytes.get(4..8).unwrap_or_default()).into_owned();
        return Err(Error::Payload(format!("magic is {found:?}, expected \"VH00\"")));
    }
    let header_size = number(bytes, 8..10)?;
    let graph_offset = number(bytes, 10..14)?;
    let graph_size = number(bytes, 14..18)?;
    let data_offset = number(bytes, 18..22)?;
    let stated = number(bytes, 22..30)?;
    let total = bytes.len();
    let out_of_order = header_size < HEADER_SIZE || graph_offset < header_size || graph_size == 0;
    if out_of_order || graph_offset.checked_add(graph_size).is_none_or(|end| end > data_offset) || data_offset > total {
        return Err(Error::Payload(format!(
            "sections do not fit: header {header_size}, graph {graph_size} at {graph_offset}, data at {data_offset} of {total} bytes"
        )));
    }
    let data_size = if stated == 0 { total - data_offset } else { stated };
    match data_offset.checked_add(data_size) {
        Some(end) if end <= total => {
            Ok(Sections { graph: graph_offset..graph_offset + graph_size, data: data_offset..end })
        }
        _ => {
            Err(Error::Payload(format!("data section of {data_size} bytes at {data_offset} passes the end at {total}")))
        }
    }
}

fn number(bytes: &[u8], range: Range<usize>) -> Result<usize> {
    let field = bytes.get(range).unwrap_or_default();
    let value = field.iter().rev().fold(0u64, |n, &byte| n << 8 | u64::from(byte));
    usize::try_from(value).map_err(|_| Error::Payload(format!("section size {value} is not addressable")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(graph_offset: u32, graph_size: u32, data_offset: u32, data_size: u64) -> Vec<u8> {
        let mut bytes = b"\0\0\0\0VH00".to_vec();
        bytes.extend(30u16.to_le_bytes());
        bytes.extend(graph_offset.to_le_bytes());
        bytes.extend(graph_size.to_le_bytes());
        bytes.extend(data_offset.to_le_bytes());
        bytes.extend(data_size.to_le_bytes());
        bytes.resize(64, 0);
        bytes
    }

    #[test]
    fn sections_are_found() {
        let found = sections(&header(32, 10, 48, 7)).unwrap();
        assert_eq!(found, Sections { graph: 32..42, data: 48..55 });
        let legacy = sections(&header(32, 10, 48, 0)).unwrap();
        assert_eq!(legacy.data, 48..64);
    }

    #[test]
    fn ranges_outside_the_payload_are_refused() {
        let bad = [
            header(32, 0, 48, 0),
            header(10, 5, 48, 0),
            header(32, 20, 48, 0),
            header(32, 10, 65, 0),
            header(32, 10, 48, 17),
            header(32, 10, 48, u64::MAX),
            header(u32::MAX, u32::MAX, 48, 0),
        ];
        for bytes in bad {
            assert!(sections(&bytes).is_err());
        }
        assert!(sections(&header(32, 10, 48, 7)[..29]).is_err());
    }
}
