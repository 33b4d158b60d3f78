//! Bytes as choices: values of every kind, operators from the table, arguments that mostly fit and sometimes do not.

use executorch_webgpu::graph::{Constant, DType, Dims, Graph, Node, Tensor, Value, ValueId};
use executorch_webgpu::ops::{ALL, TABLE};

const SIZES: [u32; 16] = [1, 4, 2, 8, 3, 1, 16, 0, 32, 64, 17, 5, 4096, 65536, i32::MAX as u32, u32::MAX];
const INTEGERS: [i64; 12] = [0, 1, -1, 2, 32, 3, 64, -3, i32::MAX as i64, i32::MIN as i64, i64::MAX, i64::MIN];
const DOUBLES: [f64; 10] = [0.0, 1.0, 0.5, -1.0, 2.0, 1e30, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
const TEXTS: [&str; 5] = ["none", "tanh", "floor", "trunc", "?"];

/// A source of choices; 0 when the bytes are used up.
pub struct Recipe<'a> {
    bytes: std::slice::Iter<'a, u8>,
    graph: Graph,
    defined: Vec<ValueId>,
}

impl<'a> Recipe<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Recipe { bytes: bytes.iter(), graph: Graph::default(), defined: Vec::new() }
    }

    fn next(&mut self) -> usize {
        self.bytes.next().map_or(0, |&byte| usize::from(byte))
    }

    fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.next() % items.len()]
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.next() % one_in == 1
    }

    pub fn graph(mut self) -> Graph {
        self.graph.constants = ["a", "b"].map(|key| Constant::Named { key: key.into() }).to_vec();
        let shape = self.shape();
        for _ in 0..1 + self.next() % 8 {
            let id = self.value(&shape);
            self.publish(id);
        }
        for _ in 0..1 + self.next() % 5 {
            self.node(&shape);
        }
        for _ in 0..1 + self.next() % 2 {
            let id = self.argument(&shape);
            self.graph.outputs.push(id);
        }
        self.graph
    }

    fn shape(&mut self) -> Vec<u32> {
        (0..self.next() % 6).map(|_| self.pick(&SIZES)).collect()
    }

    /// Mostly the common shape, so that operands fit one another.
    fn shape_like(&mut self, shape: &[u32]) -> Vec<u32> {
        match self.next() % 8 {
            0 => self.shape(),
            1 => shape.iter().skip(1).copied().collect(),
            2 => shape.iter().map(|_| self.pick(&SIZES)).collect(),
            3 => shape.iter().rev().copied().collect(),
            _ => shape.to_vec(),
        }
    }

    fn tensor(&mut self, shape: &[u32], constant: bool) -> Value {
        let sizes = self.shape_like(shape);
        let max = Dims::new(&sizes).unwrap_or_default();
        let dtype = if self.chance(3) { self.pick(ALL) } else { DType::F32 };
        let constant = constant.then(|| self.next() as u32 % 2);
        Value::Tensor(Tensor { dtype, stored: dtype, swapped: false, max, constant })
    }

    fn value(&mut self, shape: &[u32]) -> ValueId {
        let value = match self.next() % 12 {
            0 => Value::Null,
            1 => Value::Int(self.pick(&INTEGERS)),
            2 => Value::Double(self.pick(&DOUBLES)),
            3 => Value::Bool(self.chance(2)),
            4 => Value::Str(self.pick(&TEXTS).to_string()),
            5 => Value::Ints((0..self.next() % 5).map(|_| self.pick(&INTEGERS)).collect()),
            6 => Value::List((0..self.next() % 4).map(|_| self.reference()).collect()),
            7 => Value::SymInt,
            8 => self.tensor(shape, true),
            _ => self.tensor(shape, false),
        };
        self.graph.push(value)
    }

    /// Makes a value readable: what is neither constant nor computed becomes an input.
    fn publish(&mut self, id: ValueId) {
        match self.graph.value(id) {
            Value::SymInt => self.graph.inputs.push(id),
            Value::Tensor(tensor) if tensor.constant.is_none() => self.graph.inputs.push(id),
            _ => {}
        }
        self.defined.push(id);
    }

    fn reference(&mut self) -> ValueId {
        let any = self.next();
        let count = self.defined.len().max(1);
        match self.chance(64) {
            true => ValueId(any as u32),
            false => self.defined.get(any % count).copied().unwrap_or(ValueId(0)),
        }
    }

    fn argument(&mut self, shape: &[u32]) -> ValueId {
        if self.chance(3) {
            let id = self.value(shape);
            self.publish(id);
            return id;
        }
        self.reference()
    }

    fn node(&mut self, shape: &[u32]) {
        let rows: usize = TABLE.iter().map(|family| family.len()).sum();
        let row = (self.next() << 8 | self.next()) % rows.max(1);
        let op = TABLE.iter().flat_map(|family| family.iter()).nth(row).map_or("?", |op| op.name);
        let mut args = if self.chance(4) { self.wild(shape) } else { self.plausible(shape) };
        let output = self.output(shape);
        args.push(output);
        self.graph.nodes.push(Node { op: op.to_string(), args });
    }

    fn wild(&mut self, shape: &[u32]) -> Vec<ValueId> {
        (0..self.next() % 12).map(|_| self.argument(shape)).collect()
    }

    /// Tensors, then scalars, as most operators take them.
    fn plausible(&mut self, shape: &[u32]) -> Vec<ValueId> {
        let known = self.defined.iter().copied().filter(|&id| self.graph.tensor(id).is_some());
        let mut known: Vec<ValueId> = known.collect();
        if known.is_empty() || self.chance(8) {
            let constant = self.chance(2);
            let value = self.tensor(shape, constant);
            let id = self.graph.push(value);
            self.publish(id);
            known.push(id);
        }
        let mut args: Vec<ValueId> = (0..1 + self.next() % 3).map(|_| self.pick(&known)).collect();
        for _ in 0..self.next() % 6 {
            let value = match self.next() % 6 {
                0 => Value::Null,
                1 => Value::Double(self.pick(&DOUBLES)),
                2 => Value::Bool(self.chance(2)),
                3 => Value::Ints((0..self.next() % 5).map(|_| self.pick(&INTEGERS)).collect()),
                4 => Value::Str(self.pick(&TEXTS).to_string()),
                _ => Value::Int(self.pick(&INTEGERS)),
            };
            args.push(self.graph.push(value));
        }
        args
    }

    fn output(&mut self, shape: &[u32]) -> ValueId {
        if self.chance(8) {
            return self.reference();
        }
        let count = if self.chance(4) { self.next() % 4 } else { 1 };
        let items: Vec<ValueId> = (0..count)
            .map(|_| {
                let value = if self.chance(6) { Value::SymInt } else { self.tensor(shape, false) };
                self.graph.push(value)
            })
            .collect();
        self.defined.extend(&items);
        match items[..] {
            [one] => one,
            _ => self.graph.push(Value::List(items)),
        }
    }
}
