use crate::bridge::ffi::{RawValue, ValueTag};
use crate::error::{Error, Result};
use crate::scalar::{Element, ScalarType};

/// A contiguous tensor in host memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    scalar_type: ScalarType,
    sizes: Vec<i32>,
    bytes: Vec<u8>,
}

impl Tensor {
    /// Fails unless `bytes` is exactly what the sizes need.
    pub fn from_bytes(scalar_type: ScalarType, sizes: &[i32], bytes: Vec<u8>) -> Result<Self> {
        let expected = sizes.iter().try_fold(scalar_type.size(), |product, &size| {
            usize::try_from(size).ok().and_then(|size| product.checked_mul(size))
        });
        if expected != Some(bytes.len()) {
            return Err(Error::host(format!(
                "tensor of {scalar_type:?} {sizes:?}: found {} bytes, expected {}",
                bytes.len(),
                expected.map_or_else(|| "sizes that can be multiplied".to_owned(), |bytes| bytes.to_string())
            )));
        }
        Ok(Self { scalar_type, sizes: sizes.to_vec(), bytes })
    }

    /// Copies `elements`; fails unless there are as many as the sizes need.
    pub fn new<T: Element>(sizes: &[i32], elements: &[T]) -> Result<Self> {
        Self::from_bytes(T::SCALAR_TYPE, sizes, bytemuck::cast_slice(elements).to_vec())
    }

    /// Element type.
    pub fn scalar_type(&self) -> ScalarType {
        self.scalar_type
    }

    /// Size of each dimension.
    pub fn sizes(&self) -> &[i32] {
        &self.sizes
    }

    /// Elements in row-major order, little-endian.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Copies the elements; fails when they are of another type.
    pub fn elements<T: Element>(&self) -> Result<Vec<T>> {
        if self.scalar_type == T::SCALAR_TYPE {
            return Ok(bytemuck::pod_collect_to_vec(&self.bytes));
        }
        Err(Error::host(format!(
            "tensor {:?}: found elements of {:?}, expected {:?}",
            self.sizes,
            self.scalar_type,
            T::SCALAR_TYPE
        )))
    }
}

/// An input or output of a method.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    None,
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Double(f64),
    /// A flag.
    Bool(bool),
    /// A tensor.
    Tensor(Tensor),
}

impl Value {
    /// The tensor in this value; fails when it is something else.
    pub fn tensor(&self) -> Result<&Tensor> {
        match self {
            Value::Tensor(tensor) => Ok(tensor),
            other => Err(Error::host(format!("value: found {other:?}, expected a tensor"))),
        }
    }

    pub(crate) fn into_raw(self) -> RawValue {
        let mut raw = RawValue {
            tag: ValueTag::None,
            integer: 0,
            real: 0.0,
            scalar_type: 0,
            sizes: Vec::new(),
            bytes: Vec::new(),
        };
        match self {
            Value::None => {}
            Value::Int(number) => (raw.tag, raw.integer) = (ValueTag::Int, number),
            Value::Double(number) => (raw.tag, raw.real) = (ValueTag::Double, number),
            Value::Bool(flag) => (raw.tag, raw.integer) = (ValueTag::Bool, i64::from(flag)),
            Value::Tensor(tensor) => {
                raw.tag = ValueTag::Tensor;
                raw.scalar_type = tensor.scalar_type as i32;
                raw.sizes = tensor.sizes;
                raw.bytes = tensor.bytes;
            }
        }
        raw
    }

    pub(crate) fn from_raw(raw: RawValue) -> Result<Self> {
        match raw.tag {
            ValueTag::None => Ok(Value::None),
            ValueTag::Int => Ok(Value::Int(raw.integer)),
            ValueTag::Double => Ok(Value::Double(raw.real)),
            ValueTag::Bool => Ok(Value::Bool(raw.integer != 0)),
            ValueTag::Tensor => {
                let scalar_type = ScalarType::from_number(raw.scalar_type)?;
                Tensor::from_bytes(scalar_type, &raw.sizes, raw.bytes).map(Value::Tensor)
            }
            _ => Err(Error::host("value: found a list or a string, expected a tensor, a number, a flag or none")),
        }
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Self {
        Value::Tensor(tensor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_must_fit_the_sizes() {
        assert!(Tensor::new(&[2, 3], &[0f32; 6]).is_ok());
        assert!(Tensor::new(&[], &[1i64]).is_ok());
        assert!(Tensor::new(&[2, 3], &[0f32; 5]).is_err());
        assert!(Tensor::new(&[-1], &[0f32; 1]).is_err());
        assert!(Tensor::new::<f32>(&[i32::MAX, i32::MAX, i32::MAX, i32::MAX], &[]).is_err());
    }

    #[test]
    fn elements_come_back_in_their_type_only() -> Result<()> {
        let tensor = Tensor::new(&[2], &[1i64, -1])?;
        assert_eq!(tensor.elements::<i64>()?, [1, -1]);
        assert!(tensor.elements::<f64>().is_err());
        Ok(())
    }
}
