//! A host that expects results of types of its own choice.

use executorch_webgpu::error::Result;
use executorch_webgpu::exec::{HostTensor, HostValue, Outputs, Program};
use executorch_webgpu::graph::{DType, Dims};

use crate::common::Data;

/// Results as they came: bytes of tensors, numbers of scalars.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    types: Vec<DType>,
    pub tensors: Vec<(Vec<u32>, Vec<u8>)>,
    pub scalars: Vec<Option<i64>>,
}

impl Results {
    pub fn new(types: &[DType]) -> Results {
        let count = types.len();
        Results { types: types.to_vec(), tensors: vec![Default::default(); count], scalars: vec![None; count] }
    }

    pub fn data(&self, index: usize) -> Data {
        let (dims, bytes) = &self.tensors[index];
        Data::from_bytes(self.types[index], dims, bytes)
    }
}

impl Outputs for Results {
    fn dtype(&self, index: usize) -> Option<DType> {
        self.types.get(index).copied()
    }

    fn tensor(&mut self, index: usize, dims: &Dims) -> Result<&mut [u8]> {
        let bytes = vec![0xEE; dims.numel() as usize * self.types[index].size()];
        self.tensors[index] = (dims.to_vec(), bytes);
        Ok(&mut self.tensors[index].1)
    }

    fn scalar(&mut self, index: usize, value: i64) -> Result<()> {
        self.scalars[index] = Some(value);
        Ok(())
    }
}

/// `data` as an argument; `bytes` are its bytes.
pub fn tensor<'a>(data: &Data, bytes: &'a [u8]) -> HostValue<'a> {
    HostValue::Tensor(HostTensor { dtype: data.dtype, dims: data.shape(), bytes })
}

/// One call with tensors, whose results the host wants in `types`.
pub fn call(program: &mut Program, inputs: &[&Data], types: &[DType]) -> Result<Results> {
    let bytes: Vec<Vec<u8>> = inputs.iter().map(|x| x.bytes()).collect();
    let values: Vec<HostValue<'_>> = inputs.iter().zip(&bytes).map(|(x, bytes)| tensor(x, bytes)).collect();
    let mut results = Results::new(types);
    program.execute(&values, &mut results)?;
    Ok(results)
}
