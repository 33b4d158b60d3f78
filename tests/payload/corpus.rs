//! Sound payloads to change: one that ExecuTorch's exporter wrote, and some of our own.

use executorch_webgpu::graph::DType::F32;

use crate::common::writer::{Bytes, Entry};
use crate::{exported, seeds};

pub fn all() -> Vec<Vec<u8>> {
    let inline = {
        let mut m = seeds::smallest();
        let x = m.payload.inputs[0];
        m.payload.data = vec![0; 32];
        m.payload.constants.push(Bytes::Inline { offset: 4, length: 24 });
        let bias = m.add(Entry::Tensor { dtype: F32, dims: vec![2, 3], constant: 0 });
        let (one, sum) = (m.int(1), m.tensor(F32, &[2, 3]));
        m.op("aten.add.Tensor", &[x, bias, one, sum]);
        m.output(sum);
        m
    };
    vec![
        exported::payload().to_vec(),
        seeds::smallest().payload.write(),
        seeds::decoder().payload.write(),
        inline.payload.write(),
    ]
}
