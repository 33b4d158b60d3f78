use crate::error::{Error, Result};
use crate::gpu::Timed;
use crate::graph::{DType, Dims};

/// An argument of a call as the host holds it.
#[derive(Clone, Debug)]
pub enum HostValue<'a> {
    /// No value.
    None,
    /// Integer or bool.
    Int(i64),
    /// Floating-point number.
    Double(f64),
    /// Tensor, contiguous and row-major.
    Tensor(HostTensor<'a>),
}

/// A contiguous tensor in host memory.
#[derive(Clone, Debug)]
pub struct HostTensor<'a> {
    /// Element type.
    pub dtype: DType,
    /// Shape.
    pub dims: Dims,
    /// Elements.
    pub bytes: &'a [u8],
}

impl HostTensor<'_> {
    /// Reads one integer element.
    pub fn integer(&self, index: usize) -> Result<i64> {
        let size = self.dtype.size();
        let bytes = self.bytes.get(index * size..(index + 1) * size).unwrap_or_default();
        let word = |range: &[u8]| range.iter().rev().fold(0u64, |n, &byte| n << 8 | u64::from(byte));
        match (self.dtype, bytes.len() == size) {
            (DType::I64, true) => Ok(word(bytes) as i64),
            (DType::I32, true) => Ok(i64::from(word(bytes) as i32)),
            (DType::I8, true) => Ok(i64::from(word(bytes) as i8)),
            (DType::U8 | DType::Bool, true) => Ok(word(bytes) as i64),
            _ => Err(Error::shape("input", format!("element {index} of {} {} is no integer", self.dtype, self.dims))),
        }
    }
}

/// Where the results of a call go.
pub trait Outputs {
    /// Element type that the host expects of output `index`.
    fn dtype(&self, index: usize) -> Option<DType>;
    /// Resizes output `index` to `dims` and lends its memory.
    fn tensor(&mut self, index: usize, dims: &Dims) -> Result<&mut [u8]>;
    /// Sets output `index`, a scalar.
    fn scalar(&mut self, index: usize, value: i64) -> Result<()>;
    /// What a profiler wants to know the time of.
    fn timed(&self) -> Timed {
        Timed::Nothing
    }
    /// Records one step, or the whole call, that ran from `start` to `end`, in nanoseconds on one clock.
    fn step(&mut self, _name: &str, _start: u64, _end: u64) {}
}

/// Lends the bytes of named constants.
pub trait DataSource {
    /// A number that no other source has as long as a program from this one lives; `None` where there is none.
    fn number(&self) -> Option<u64> {
        None
    }

    /// Calls `read` with the bytes behind `key`; they are taken back when it returns.
    fn with(&self, key: &str, read: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;
}

/// A source without any data.
pub struct NoData;

impl DataSource for NoData {
    fn with(&self, key: &str, _: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        Err(Error::Data(format!("{key} is not there")))
    }
}
