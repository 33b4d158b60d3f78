//! Operators: one file per family, one row per operator, one table of all.
//!
//! A row names a pure `lower`: node and live shapes in, shapes and dispatches out. Nothing here touches a device.

mod args;
mod lower;
mod parts;
mod table;

pub mod attention;
mod binary;
mod cast;
mod conv_q8;
mod convolution;
mod copy;
mod elementwise;
mod elementwise_q8;
mod embedding_q4;
mod fill;
mod join;
mod layout;
pub mod linear;
mod linear_q8;
mod norm;
mod pool;
mod qparams;
mod quantize;
mod reduce;
mod reindex;
mod rope;
mod rows;
mod sample;
mod softmax;
mod symbolic;
mod take;
mod training;
mod transpose;
mod unary;
mod view;
mod window;

pub use binary::SILU_MUL;
pub use lower::{Bind, Bound, DynInt, Env, Lower, Lowered, Operand, Params, Step};
pub use norm::RMS_NORM;
pub use rope::ROPE;
pub use table::{INTERNAL, TABLE, find};

use crate::error::Result;
use crate::graph::DType;

/// Tensor arguments of one list.
pub type Tensors = Vec<Operand>;

/// One operator: a row of its family's table.
#[derive(Debug)]
pub struct Op {
    /// Name in the payload.
    pub name: &'static str,
    /// WGSL expression of an elementwise operator; empty for others.
    pub formula: &'static str,
    /// Element types that the first operand may have, or the result where the first operand is no tensor.
    pub dtypes: &'static [DType],
    /// Arguments that are written in place.
    pub writes: &'static [usize],
    /// True when the output has the bytes of argument 0 in the same order.
    pub is_view: bool,
    /// One line for the documentation: forms that are not taken, or limits.
    pub notes: &'static str,
    /// The lowering.
    pub lower: fn(&mut Lower<'_>) -> Result<()>,
}

impl Op {
    /// A row without formula, writes and notes.
    pub const fn new(name: &'static str, dtypes: &'static [DType], lower: fn(&mut Lower<'_>) -> Result<()>) -> Op {
        Op { name, formula: "", dtypes, writes: &[], is_view: false, notes: "", lower }
    }

    /// The row with a WGSL expression.
    pub const fn formula(mut self, formula: &'static str) -> Op {
        self.formula = formula;
        self
    }

    /// The row with arguments that are written in place.
    pub const fn writes(mut self, writes: &'static [usize]) -> Op {
        self.writes = writes;
        self
    }

    /// The row of an operator that only renames bytes.
    pub const fn view(mut self) -> Op {
        self.is_view = true;
        self
    }

    /// The row with a line of documentation.
    pub const fn notes(mut self, notes: &'static str) -> Op {
        self.notes = notes;
        self
    }
}

/// Both floating-point types.
pub const FLOATS: &[DType] = &[DType::F32, DType::F16];
/// Types that arithmetic takes.
pub const NUMBERS: &[DType] = &[DType::F32, DType::F16, DType::I32, DType::I64, DType::I8, DType::U8];
/// Types that bit operations take.
pub const INTEGERS: &[DType] = &[DType::I32, DType::I64, DType::I8, DType::U8, DType::Bool];
/// Every type.
pub const ALL: &[DType] =
    &[DType::F32, DType::F16, DType::I32, DType::I64, DType::I8, DType::U8, DType::Bool, DType::F64];
