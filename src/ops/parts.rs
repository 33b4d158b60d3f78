//! Tensors beyond one binding: which of their rows a step sees.

use std::ops::Range;

use super::{Lower, Operand};
use crate::error::Result;

impl Operand {
    /// Rows of what the device holds.
    pub fn rows(&self) -> u32 {
        if self.swapped { self.dims.last() } else { self.dims.rows() }
    }

    /// Bytes of the whole tensor.
    pub fn bytes(&self) -> u64 {
        u64::from(self.dims.numel()) * u64::from(self.elem.size())
    }

    /// Bytes of a row of what the device holds.
    pub fn row_bytes(&self) -> u64 {
        self.bytes() / u64::from(self.rows().max(1))
    }

    /// Only these rows of what the device holds.
    pub fn only(self, rows: &Range<u32>) -> Operand {
        let row = self.row_bytes();
        let range = (u64::from(rows.start) * row, rows.len() as u64 * row);
        Operand { range: Some(range).filter(|&(_, bytes)| bytes < self.bytes()), ..self }
    }
}

impl Lower<'_> {
    /// The tensor from element `first` on, at every live shape.
    pub fn tail(&self, operand: Operand, first: u32) -> Operand {
        let size = u64::from(operand.elem.size());
        let (start, end) = (u64::from(first) * size, u64::from(self.max(operand).numel()) * size);
        Operand { range: (first > 0).then_some((start, end.saturating_sub(start))), ..operand }
    }

    /// Cuts the rows of tables that have at least `rows` each into as few runs as it takes for one binding to cover those
    /// of each table.
    pub fn parts(&self, rows: u32, tables: &[Operand]) -> Result<Vec<Range<u32>>> {
        let caps = self.env.caps;
        let mut steps = Vec::new();
        for table in tables.iter().filter(|table| table.bytes() > caps.binding()) {
            let (row, limit) = (table.row_bytes(), caps.binding());
            let most = u32::try_from(caps.rows_of_binding(row)).unwrap_or(u32::MAX);
            if most == 0 {
                let what = self.env.graph.describe(table.id);
                return Err(self.unsupported(format!("rows of {what} have {row} bytes, one binding covers {limit}")));
            }
            steps.push(most);
        }
        let mut parts = Vec::new();
        let mut start = 0;
        while start < rows {
            let next = steps.iter().map(|most| (start / most + 1).saturating_mul(*most)).fold(rows, u32::min);
            parts.push(start..next);
            start = next;
        }
        Ok(parts)
    }
}
