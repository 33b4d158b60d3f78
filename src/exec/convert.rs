//! Element conversion between the host, the payload and the device.

use half::f16;

use crate::error::{Error, Result};
use crate::graph::DType;
use crate::shader::Elem;

/// The bytes that the device holds for `bytes` of `dtype`; `None` when they are the same.
///
/// 64-bit integers must fit 32 bits. Values beyond the range of f16 become infinite, as in a cast.
pub fn to_device(bytes: &[u8], dtype: DType, elem: Elem) -> Result<Option<Vec<u8>>> {
    let converted = match (dtype, elem) {
        (DType::I64, Elem::I32) => {
            let numbers = cells(bytes).map(i64::from_le_bytes);
            let narrow = |n| i32::try_from(n).map_err(|_| Error::shape("input", format!("{n} does not fit 32 bits")));
            let narrowed: Result<Vec<[u8; 4]>> = numbers.map(|n| narrow(n).map(i32::to_le_bytes)).collect();
            narrowed?.concat()
        }
        (DType::F64, Elem::F32) => map(bytes, |b| (f64::from_le_bytes(b) as f32).to_le_bytes()),
        (DType::F32, Elem::F16) => map(bytes, |b| f16::from_f32(f32::from_le_bytes(b)).to_le_bytes()),
        (DType::F16, Elem::F32) => map(bytes, |b| f16::from_le_bytes(b).to_f32().to_le_bytes()),
        (DType::F64, Elem::F16) => map(bytes, |b| f16::from_f64(f64::from_le_bytes(b)).to_le_bytes()),
        _ if same(dtype, elem) => return Ok(None),
        _ => return Err(mismatch(dtype, elem)),
    };
    Ok(Some(converted))
}

/// Writes device elements into host memory of `dtype`. `from` may be longer than needed.
pub fn to_host(from: &[u8], elem: Elem, to: &mut [u8], dtype: DType) -> Result<()> {
    match (elem, dtype) {
        (Elem::I32, DType::I64) => spread(from, to, |b| i64::from(i32::from_le_bytes(b)).to_le_bytes()),
        (Elem::F32, DType::F64) => spread(from, to, |b| f64::from(f32::from_le_bytes(b)).to_le_bytes()),
        (Elem::F32, DType::F16) => spread(from, to, |b| f16::from_f32(f32::from_le_bytes(b)).to_le_bytes()),
        (Elem::F16, DType::F32) => spread(from, to, |b| f16::from_le_bytes(b).to_f32().to_le_bytes()),
        (Elem::F16, DType::F64) => spread(from, to, |b| f16::from_le_bytes(b).to_f64().to_le_bytes()),
        _ if same(dtype, elem) => to.iter_mut().zip(from).for_each(|(to, from)| *to = *from),
        _ => return Err(mismatch(dtype, elem)),
    }
    Ok(())
}

fn same(dtype: DType, elem: Elem) -> bool {
    matches!(
        (dtype, elem),
        (DType::Bool, Elem::Bool)
            | (DType::U8, Elem::U8)
            | (DType::I8, Elem::I8)
            | (DType::I32, Elem::I32)
            | (DType::F16, Elem::F16)
            | (DType::F32, Elem::F32)
    )
}

fn mismatch(dtype: DType, elem: Elem) -> Error {
    Error::shape("argument", format!("it is {dtype}, but the program holds {elem:?}"))
}

fn cells<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> {
    bytes.chunks_exact(N).map(|chunk| {
        let mut cell = [0; N];
        cell.copy_from_slice(chunk);
        cell
    })
}

fn map<const A: usize, const B: usize>(bytes: &[u8], f: impl Fn([u8; A]) -> [u8; B]) -> Vec<u8> {
    cells(bytes).flat_map(f).collect()
}

fn spread<const A: usize, const B: usize>(from: &[u8], to: &mut [u8], f: impl Fn([u8; A]) -> [u8; B]) {
    for (to, cell) in to.chunks_exact_mut(B).zip(cells(from)) {
        to.copy_from_slice(&f(cell));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_narrow_and_widen_with_their_sign() {
        let host: Vec<u8> = [-5i64, 7, i64::from(i32::MIN)].iter().flat_map(|n| n.to_le_bytes()).collect();
        let device = to_device(&host, DType::I64, Elem::I32).unwrap().unwrap();
        let mut back = vec![0; host.len()];
        to_host(&device, Elem::I32, &mut back, DType::I64).unwrap();
        assert_eq!(back, host);
    }

    #[test]
    fn an_integer_beyond_32_bits_is_refused_by_value() {
        let host = (1i64 << 31).to_le_bytes();
        let text = to_device(&host, DType::I64, Elem::I32).unwrap_err().to_string();
        assert!(text.contains("2147483648"), "{text}");
    }

    #[test]
    fn equal_types_need_no_conversion_and_others_are_refused() {
        assert_eq!(to_device(&[1, 0, 1], DType::Bool, Elem::Bool).unwrap(), None);
        assert!(to_device(&[0; 4], DType::F32, Elem::I32).is_err());
        assert!(to_host(&[0; 4], Elem::Bool, &mut [0; 4], DType::U8).is_err());
    }

    #[test]
    fn halves_and_doubles_round_trip() {
        let host: Vec<u8> = [1.5f32, -0.0, f32::INFINITY].iter().flat_map(|x| x.to_le_bytes()).collect();
        let device = to_device(&host, DType::F32, Elem::F16).unwrap().unwrap();
        let mut back = vec![0; host.len()];
        to_host(&device, Elem::F16, &mut back, DType::F32).unwrap();
        assert_eq!(back, host);
    }
}
