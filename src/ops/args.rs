//! Scalar arguments. The exporter stores equal numbers once, so `1` and `1.0` may arrive as either type.

use super::lower::{DynInt, Lower};
use crate::error::Result;
use crate::graph::{Value, ValueId};

impl Lower<'_> {
    /// Integer argument `index`: Int, integral Double, Bool, or a SymInt's live number.
    pub fn int(&mut self, index: usize) -> Result<i64> {
        let id = self.node.args.get(index).copied().unwrap_or(ValueId(u32::MAX));
        match self.number(id) {
            Some(n) => Ok(n),
            None => Err(self.wrong(index, "an integer")),
        }
    }

    /// Integer argument `index`, or `None` for None.
    pub fn optional_int(&mut self, index: usize) -> Result<Option<i64>> {
        match self.value(index)? {
            Value::Null => Ok(None),
            _ => self.int(index).map(Some),
        }
    }

    /// Integer argument `index`, or `default` for None.
    pub fn int_or(&mut self, index: usize, default: i64) -> Result<i64> {
        self.optional_int(index).map(|n| n.unwrap_or(default))
    }

    fn number(&mut self, id: ValueId) -> Option<i64> {
        match self.env.graph.value(id) {
            Value::Int(n) => Some(*n),
            Value::Bool(b) => Some(i64::from(*b)),
            Value::Double(x) if x.fract() == 0.0 && x.abs() < 9.0e15 => Some(*x as i64),
            Value::SymInt => {
                self.answer.volatile = true;
                self.env.symints.get(id.index()).map(|&n| i64::from(n))
            }
            _ => None,
        }
    }

    /// Integer argument `index` as a number that kernels read, without depending on its value here.
    pub fn dyn_int(&self, index: usize) -> Result<DynInt> {
        match self.value(index)? {
            Value::SymInt => {
                let id = self.node.args.get(index).map_or(0, |id| id.index());
                Ok(DynInt { slot: self.env.slots.get(id).copied().unwrap_or(0), base: 0 })
            }
            Value::Int(n) if i32::try_from(*n).is_ok() => Ok(DynInt { slot: 0, base: *n as i32 }),
            Value::Double(x) if x.fract() == 0.0 && x.abs() < 2.0e9 => Ok(DynInt { slot: 0, base: *x as i32 }),
            _ => Err(self.wrong(index, "a 32-bit integer")),
        }
    }

    /// Floating-point argument `index`: Double, Int or Bool.
    pub fn double(&self, index: usize) -> Result<f64> {
        match self.value(index)? {
            Value::Double(x) => Ok(*x),
            Value::Int(n) => Ok(*n as f64),
            Value::Bool(b) => Ok(f64::from(u8::from(*b))),
            _ => Err(self.wrong(index, "a number")),
        }
    }

    /// Floating-point argument `index`, or `default` for None.
    pub fn double_or(&self, index: usize, default: f64) -> Result<f64> {
        match self.value(index)? {
            Value::Null => Ok(default),
            _ => self.double(index),
        }
    }

    /// Bool argument `index`: Bool or Int.
    pub fn boolean(&self, index: usize) -> Result<bool> {
        match self.value(index)? {
            Value::Bool(b) => Ok(*b),
            Value::Int(n) => Ok(*n != 0),
            Value::Double(x) => Ok(*x != 0.0),
            _ => Err(self.wrong(index, "a bool")),
        }
    }

    /// Bool argument `index`, or `default` for None.
    pub fn boolean_or(&self, index: usize, default: bool) -> Result<bool> {
        match self.value(index)? {
            Value::Null => Ok(default),
            _ => self.boolean(index),
        }
    }

    /// String argument `index`.
    pub fn text(&self, index: usize) -> Result<&str> {
        match self.value(index)? {
            Value::Str(s) => Ok(s),
            _ => Err(self.wrong(index, "a string")),
        }
    }

    /// String argument `index`, or `None` for None.
    pub fn optional_text(&self, index: usize) -> Result<Option<&str>> {
        match self.value(index)? {
            Value::Null => Ok(None),
            _ => self.text(index).map(Some),
        }
    }

    /// Integer list argument `index`; SymInts in it read as their live numbers, None as an empty list.
    pub fn ints(&mut self, index: usize) -> Result<Vec<i64>> {
        match self.value(index)? {
            Value::Ints(items) => Ok(items.clone()),
            Value::Null => Ok(Vec::new()),
            Value::Bools(items) => Ok(items.iter().map(|&b| i64::from(b)).collect()),
            Value::List(items) => {
                let items = items.clone();
                let numbers: Option<Vec<i64>> = items.iter().map(|&id| self.number(id)).collect();
                numbers.ok_or_else(|| self.wrong(index, "a list of integers"))
            }
            Value::Doubles(items) if items.iter().all(|x| x.fract() == 0.0) => {
                Ok(items.iter().map(|&x| x as i64).collect())
            }
            Value::Int(_) | Value::Double(_) | Value::SymInt => Ok(vec![self.int(index)?]),
            _ => Err(self.wrong(index, "a list of integers")),
        }
    }

    /// Axis argument `index` of a tensor of rank `rank`, counted from either end.
    pub fn axis(&mut self, index: usize, rank: usize) -> Result<usize> {
        let dim = self.int(index)?;
        self.to_axis(dim, rank)
    }

    /// A dimension number as an axis of a tensor of rank `rank`.
    pub fn to_axis(&self, dim: i64, rank: usize) -> Result<usize> {
        let size = rank.max(1) as i64;
        let axis = if dim < 0 { dim + size } else { dim };
        match usize::try_from(axis) {
            Ok(axis) if (axis as i64) < size => Ok(axis),
            _ => Err(self.refuse(format!("dimension {dim} is outside rank {rank}"))),
        }
    }
}
