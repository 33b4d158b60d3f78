//! What `lower` sees of one node, and what it answers.

use std::fmt;

use super::{Op, Tensors};
use crate::error::{Error, Result};
use crate::gpu::Caps;
use crate::graph::{DType, Dims, Graph, Node, Tensor, Value, ValueId};
use crate::options::Options;
use crate::shader::{Elem, Kernel};

/// Everything a lowering depends on besides its node: the same environment always gives the same steps.
pub struct Env<'a> {
    /// The program.
    pub graph: &'a Graph,
    /// Live shape of each value; meaningful for tensors.
    pub shapes: &'a [Dims],
    /// Live number of each value; meaningful for SymInts.
    pub symints: &'a [i32],
    /// Slot in the live buffer of each value; 0, which always holds zero, for all but SymInts.
    pub slots: &'a [u32],
    /// Storage of each value: two values of one storage share their bytes.
    pub storage: &'a [u32],
    /// Reads element `index` of a graph input from host memory.
    pub host: &'a dyn Fn(ValueId, usize) -> Result<i64>,
    /// The device.
    pub caps: &'a Caps,
    /// The user's choices.
    pub options: &'a Options,
}

/// A tensor argument at its live shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Operand {
    /// The value.
    pub id: ValueId,
    /// Live shape.
    pub dims: Dims,
    /// Element type of the payload.
    pub dtype: DType,
    /// Element type on the device.
    pub elem: Elem,
    /// True when the device holds the two dimensions swapped.
    pub swapped: bool,
    /// First byte and number of bytes that kernels see of it; all when absent.
    pub range: Option<(u64, u64)>,
}

impl fmt::Display for Operand {
    /// Type and live shape, for refusals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.dtype, self.dims)
    }
}

/// An integer that a kernel reads at run time: `live(slot) + base`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DynInt {
    /// Slot in the live buffer.
    pub slot: u32,
    /// Number added to it.
    pub base: i32,
}

/// What a binding of a step points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bind {
    /// The whole storage of a tensor.
    Value(ValueId),
    /// A byte range of the storage of a tensor.
    Range(ValueId, u64, u64),
    /// The node's n-th scratch buffer.
    Scratch(u32),
}

impl From<Operand> for Bind {
    fn from(operand: Operand) -> Bind {
        match operand.range {
            Some((offset, bytes)) => Bind::Range(operand.id, offset, bytes),
            None => Bind::Value(operand.id),
        }
    }
}

/// One dispatch.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Kernel variant.
    pub kernel: Kernel,
    /// One entry per role of the kernel.
    pub binds: Vec<Bind>,
    /// The kernel's `Params`, as words.
    pub params: Vec<u32>,
    /// Workgroups.
    pub grid: [u32; 3],
}

/// A condition on a per-call integer that holds before anything is submitted: `0 <= value` and `value + extent <= limit`.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The integer.
    pub value: DynInt,
    /// Length that starts there.
    pub extent: u32,
    /// Room there is.
    pub limit: u32,
    /// What the integer is, for the message.
    pub what: &'static str,
}

impl Bound {
    /// Checks the condition for a live number.
    pub fn check(&self, live: i32) -> Result<()> {
        let Bound { extent, limit, what, .. } = *self;
        let value = i64::from(live) + i64::from(self.value.base);
        if value < 0 || value + i64::from(extent) > i64::from(limit) {
            return Err(Error::shape(what, format!("{value} with length {extent} is outside 0..{limit}")));
        }
        Ok(())
    }
}

/// The answer of a lowering.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lowered {
    /// Live shapes of the outputs.
    pub shapes: Vec<(ValueId, Dims)>,
    /// Number of the SymInt output.
    pub symint: Option<(ValueId, i32)>,
    /// Dispatches, in order.
    pub steps: Vec<Step>,
    /// Conditions to check on each call.
    pub bounds: Vec<Bound>,
    /// Bytes of each scratch buffer.
    pub scratch: Vec<u64>,
    /// Bytes that the storage of a tensor must hold, though its elements may end before.
    pub room: Vec<(ValueId, u64)>,
    /// True when the answer depends on a per-call number, so that each call with another number must ask again.
    pub volatile: bool,
    /// True when it depends on what a graph input holds, so that every call must.
    pub reads_input: bool,
}

/// One node in its environment.
pub struct Lower<'a> {
    /// The environment.
    pub env: &'a Env<'a>,
    /// The node.
    pub node: &'a Node,
    /// Its operator.
    pub op: &'static Op,
    pub(super) answer: Lowered,
}

impl<'a> Lower<'a> {
    /// Lowers one node.
    pub fn run(env: &'a Env<'a>, node: &'a Node, op: &'static Op) -> Result<Lowered> {
        let mut lower = Lower { env, node, op, answer: Lowered::default() };
        lower.check_operand()?;
        (op.lower)(&mut lower)?;
        Ok(lower.answer)
    }

    /// Refuses a first operand of a type that the operator's row does not name, or such a result where the first operand is
    /// no tensor; a 64-bit type counts as what the device holds instead.
    fn check_operand(&self) -> Result<()> {
        let graph = self.env.graph;
        let tensor = |id: Option<&ValueId>| graph.tensor(*graph.flatten(*id?).first()?);
        let operand = tensor(self.node.args.first()).map(|tensor| ("operand", tensor));
        let result = || tensor(self.node.args.last()).map(|tensor| ("result", tensor));
        let Some((what, tensor)) = operand.or_else(result) else { return Ok(()) };
        let held = match tensor.dtype {
            DType::F64 => DType::F32,
            DType::I64 => DType::I32,
            other => other,
        };
        if self.op.dtypes.is_empty() || self.op.dtypes.contains(&held) {
            return Ok(());
        }
        let expected: Vec<String> = self.op.dtypes.iter().map(DType::to_string).collect();
        Err(self.unsupported(format!("its {what} is {}, expected one of {}", tensor.dtype, expected.join(", "))))
    }

    /// The device.
    pub fn caps(&self) -> &'a Caps {
        self.env.caps
    }

    /// A refusal of this node's arguments.
    pub fn refuse(&self, why: impl Into<String>) -> Error {
        Error::shape(self.op.name, why)
    }

    /// A refusal of a form of this operator.
    pub fn unsupported(&self, why: impl Into<String>) -> Error {
        Error::unsupported(self.op.name, why)
    }

    fn id(&self, index: usize) -> Result<ValueId> {
        let args = self.node.args.len();
        let id = self.node.args.get(index).copied();
        id.ok_or_else(|| self.refuse(format!("argument {index} is missing, found {args} with the output")))
    }

    pub(super) fn value(&self, index: usize) -> Result<&'a Value> {
        self.id(index).map(|id| self.env.graph.value(id))
    }

    pub(super) fn wrong(&self, index: usize, expected: &str) -> Error {
        let found = self.id(index).map_or("nothing".into(), |id| self.env.graph.describe(id));
        self.refuse(format!("argument {index} is {found}, expected {expected}"))
    }

    pub(super) fn operand(&self, id: ValueId) -> Option<Operand> {
        let tensor = self.env.graph.tensor(id)?;
        let dims = *self.env.shapes.get(id.index())?;
        Some(Operand {
            id,
            dims,
            dtype: tensor.dtype,
            elem: Elem::of(tensor.dtype, self.env.caps.f16),
            swapped: tensor.swapped,
            range: None,
        })
    }

    /// Tensor argument `index`.
    pub fn tensor(&self, index: usize) -> Result<Operand> {
        self.operand(self.id(index)?).ok_or_else(|| self.wrong(index, "a tensor"))
    }

    /// Tensor argument `index`, or `None` for None.
    pub fn optional_tensor(&self, index: usize) -> Result<Option<Operand>> {
        match self.value(index)? {
            Value::Null => Ok(None),
            _ => self.tensor(index).map(Some),
        }
    }

    /// The tensors of list argument `index`; a lone tensor counts as a list of one.
    pub fn tensors(&self, index: usize) -> Result<Tensors> {
        let ids = self.env.graph.flatten(self.id(index)?);
        ids.into_iter().map(|id| self.operand(id).ok_or_else(|| self.wrong(index, "tensors"))).collect()
    }

    fn output_tensor(&self, index: usize) -> Result<(ValueId, &'a Tensor)> {
        let last = self.node.args.len().saturating_sub(1);
        let outputs = self.env.graph.flatten(self.id(last)?);
        let id = outputs.get(index).copied().ok_or_else(|| self.refuse(format!("output {index} is missing")))?;
        let tensor = self.env.graph.tensor(id).ok_or_else(|| self.refuse(format!("output {index} is no tensor")))?;
        Ok((id, tensor))
    }

    /// The largest shape of output `index`.
    pub fn declared_output(&self, index: usize) -> Result<Dims> {
        self.output_tensor(index).map(|(_, tensor)| tensor.max)
    }

    /// Who uses the outputs of this node: an operator, or the caller.
    pub fn output_reader(&self) -> Option<&'a str> {
        let graph = self.env.graph;
        let outputs = graph.defines(self.node);
        let reader = graph.nodes.iter().find(|node| graph.reads(node).iter().any(|id| outputs.contains(id)));
        let caller = graph.outputs.iter().any(|id| outputs.contains(id)).then_some("the caller");
        reader.map(|node| node.op.as_str()).or(caller)
    }

    /// Gives output `index` its live shape.
    pub fn output(&mut self, index: usize, dims: Dims) -> Result<Operand> {
        let (id, tensor) = self.output_tensor(index)?;
        let fits = tensor.max.len() == dims.len() && tensor.max.iter().zip(dims.iter()).all(|(max, live)| live <= max);
        if !fits {
            return Err(self.refuse(format!("the result is {dims}, but the program has room for {}", tensor.max)));
        }
        self.answer.shapes.push((id, dims));
        let elem = Elem::of(tensor.dtype, self.env.caps.f16);
        Ok(Operand { id, dims, dtype: tensor.dtype, elem, swapped: false, range: None })
    }

    /// Number of output tensors.
    pub fn outputs(&self) -> usize {
        self.node.args.last().map_or(0, |&id| self.env.graph.flatten(id).len())
    }

    /// The largest shape of a tensor.
    pub fn max(&self, operand: Operand) -> Dims {
        self.env.graph.tensor(operand.id).map_or(operand.dims, |t| t.max)
    }

    /// True when two tensors share their bytes.
    pub fn same_storage(&self, a: Operand, b: Operand) -> bool {
        self.env.storage.get(a.id.index()) == self.env.storage.get(b.id.index())
    }

    /// Gives the SymInt output its number.
    pub fn set_symint(&mut self, number: i64) -> Result<()> {
        let id = self.id(self.node.args.len().saturating_sub(1))?;
        let number = i32::try_from(number).map_err(|_| self.refuse(format!("{number} does not fit 32 bits")))?;
        if matches!(self.env.graph.value(id), Value::SymInt) {
            self.answer.symint = Some((id, number));
        }
        Ok(())
    }

    /// Asks for a scratch buffer that lives as long as this node.
    pub fn scratch(&mut self, bytes: u64) -> Bind {
        self.answer.scratch.push(bytes);
        Bind::Scratch(self.answer.scratch.len() as u32 - 1)
    }

    /// Asks that whole tiles may be written over a tensor: its storage holds at least `bytes`.
    pub fn room(&mut self, operand: Operand, bytes: u64) {
        self.answer.room.push((operand.id, bytes));
    }

    /// The most rows that a tensor can have, its last dimension being a row.
    pub fn max_rows(&self, operand: Operand) -> u32 {
        let max = self.max(operand);
        max.numel() / max.last().max(1)
    }

    /// Demands `0 <= value` and `value + extent <= limit`: now when the value is a literal, on each call otherwise.
    pub fn bound(&mut self, value: DynInt, extent: u32, limit: u32, what: &'static str) -> Result<()> {
        let bound = Bound { value, extent, limit, what };
        if value.slot == 0 {
            return bound.check(0);
        }
        self.answer.bounds.push(bound);
        Ok(())
    }

    /// A step of this node that does exactly this to `x`, if there is one.
    pub fn done(&self, kernel: &Kernel, x: Bind, params: &Params) -> Option<&Step> {
        let same = |step: &&Step| step.kernel == *kernel && step.binds.first() == Some(&x) && step.params == params.0;
        self.answer.steps.iter().find(same)
    }

    /// Adds a dispatch of an invocation for each of `count` items, in workgroups of `WG`: smaller ones than 256 do not start
    /// fast enough to keep a large device's memory busy.
    pub fn each(&mut self, kernel: Kernel, binds: &[Bind], params: Params, count: u32) -> Result<()> {
        let threads = self.env.caps.max_invocations.min(self.env.caps.max_size_x).clamp(1, 256);
        self.step(kernel.set("WG", threads), binds, params, u64::from(count.div_ceil(threads)))
    }

    /// Adds a dispatch of `groups` workgroups, folded to two dimensions when one cannot hold them.
    pub fn step(&mut self, kernel: Kernel, binds: &[Bind], params: Params, groups: u64) -> Result<()> {
        let limit = u64::from(self.env.caps.max_groups);
        let (x, y) = if groups <= limit { (groups, 1) } else { (limit, groups.div_ceil(limit)) };
        if y > limit {
            return Err(self.unsupported(format!("{groups} workgroups are more than the device can start")));
        }
        if groups > 0 {
            let grid = [x as u32, y as u32, 1];
            self.answer.steps.push(Step { kernel, binds: binds.to_vec(), params: params.0, grid });
        }
        Ok(())
    }
}

/// Words of a kernel's `Params`, in the order of its fields.
#[derive(Clone, Debug, Default)]
pub struct Params(Vec<u32>);

impl Params {
    /// No words yet.
    pub fn new() -> Params {
        Params::default()
    }

    /// Appends a `u32` field.
    pub fn u32(mut self, value: u32) -> Params {
        self.0.push(value);
        self
    }

    /// Appends an `f32` field.
    pub fn f32(mut self, value: f32) -> Params {
        self.0.push(value.to_bits());
        self
    }

    /// Appends an `i32` field.
    pub fn i32(mut self, value: i32) -> Params {
        self.0.push(value as u32);
        self
    }

    /// Appends the two fields of a run-time integer: slot, base.
    pub fn dynamic(self, value: DynInt) -> Params {
        self.u32(value.slot).i32(value.base)
    }

    /// Appends an `array<vec4<u32>, 2>` field at the next multiple of four words.
    pub fn words8(mut self, values: [u32; 8]) -> Params {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self.0.extend(values);
        self
    }
}
