//! The owned intermediate representation of one delegate: values, nodes, inputs, outputs, constants.
//!
//! A value is a tensor (with its shape bound and element type), a scalar, a list or a SymInt. A node names an operator and
//! lists value ids; its last argument is its output, or a list of outputs. The graph is in execution order.

mod check;
mod dims;
mod display;
mod dtype;

pub use dims::Dims;
pub use dtype::DType;

/// Index of a value in [`Graph::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

impl ValueId {
    /// The index as `usize`.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A tensor: element type, shape bound and where its initial content comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Element type.
    pub dtype: DType,
    /// Element type of the constant's bytes; differs from `dtype` when a pass changed how the device holds it.
    pub stored: DType,
    /// True when the device holds a constant's two dimensions swapped.
    pub swapped: bool,
    /// The largest shape; live shapes have the same rank.
    pub max: Dims,
    /// Index in [`Graph::constants`] of the initial content.
    pub constant: Option<u32>,
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// None, or an argument that has no meaning on a device (layout, memory format).
    Null,
    /// Integer.
    Int(i64),
    /// Floating-point number; may be infinite or NaN.
    Double(f64),
    /// Bool.
    Bool(bool),
    /// String.
    Str(String),
    /// List of integers.
    Ints(Vec<i64>),
    /// List of floating-point numbers.
    Doubles(Vec<f64>),
    /// List of bools.
    Bools(Vec<bool>),
    /// List of values.
    List(Vec<ValueId>),
    /// An integer that each call computes anew.
    SymInt,
    /// Tensor.
    Tensor(Tensor),
}

/// Where the bytes of a constant lie.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// In the named data of the program.
    Named {
        /// Key in the named data.
        key: String,
    },
    /// In the payload itself.
    Inline {
        /// First byte, counted from the start of the payload.
        offset: usize,
        /// Bytes from there to the end of the payload's data section.
        available: usize,
    },
    /// What the device holds of other constants, one after the other.
    Joined(Vec<ValueId>),
    /// No bytes at all: the constant of a tensor without elements.
    Empty,
}

/// One operator call.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Operator name as in the payload.
    pub op: String,
    /// Arguments; the last one is the output or a list of outputs.
    pub args: Vec<ValueId>,
}

/// One delegate's program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// All values.
    pub values: Vec<Value>,
    /// Operator calls in execution order.
    pub nodes: Vec<Node>,
    /// Values that the caller gives, in order.
    pub inputs: Vec<ValueId>,
    /// Values that the caller receives, in order.
    pub outputs: Vec<ValueId>,
    /// Initial contents.
    pub constants: Vec<Constant>,
}

impl Graph {
    /// The value behind `id`. Ids are checked by [`Graph::check`]; an unchecked one reads as `Null`.
    pub fn value(&self, id: ValueId) -> &Value {
        self.values.get(id.index()).unwrap_or(&Value::Null)
    }

    /// The tensor behind `id`, if it is one.
    pub fn tensor(&self, id: ValueId) -> Option<&Tensor> {
        match self.value(id) {
            Value::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// Appends a value.
    pub fn push(&mut self, value: Value) -> ValueId {
        let id = ValueId(self.values.len() as u32);
        self.values.push(value);
        id
    }

    /// The tensors and SymInts behind `id`, lists flattened.
    pub fn flatten(&self, id: ValueId) -> Vec<ValueId> {
        match self.value(id) {
            Value::List(items) => items.iter().flat_map(|&item| self.flatten(item)).collect(),
            Value::Tensor(_) | Value::SymInt => vec![id],
            _ => Vec::new(),
        }
    }

    /// Tensors and SymInts that `node` reads: all arguments but the last.
    pub fn reads(&self, node: &Node) -> Vec<ValueId> {
        let inputs = node.args.split_last().map_or(&[][..], |(_, inputs)| inputs);
        inputs.iter().flat_map(|&id| self.flatten(id)).collect()
    }

    /// Tensors and SymInts that `node` defines: its last argument.
    pub fn defines(&self, node: &Node) -> Vec<ValueId> {
        node.args.last().map_or_else(Vec::new, |&id| self.flatten(id))
    }
}
