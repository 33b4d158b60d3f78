//! Every operator with arguments of every wrong kind and number: refused by name, or taken, and never a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use executorch_webgpu::graph::{Constant, DType, Dims, Graph, Node, Tensor, Value, ValueId};
use executorch_webgpu::ops::{Op, TABLE};

use crate::targets;

/// Numbers of arguments that are tried.
const LENGTHS: [usize; 11] = [0, 1, 2, 3, 4, 5, 6, 8, 11, 12, 16];

fn tensor(dtype: DType, sizes: &[u32]) -> Value {
    let max = Dims::new(sizes).unwrap();
    Value::Tensor(Tensor { dtype, stored: dtype, swapped: false, max, constant: None })
}

fn fillers() -> Vec<Value> {
    let list = |ids: &[u32]| Value::List(ids.iter().map(|&id| ValueId(id)).collect());
    vec![
        tensor(DType::F32, &[4, 4]),
        Value::SymInt,
        Value::Null,
        Value::Int(0),
        Value::Int(-1),
        Value::Int(i64::MAX),
        Value::Int(i64::MIN),
        Value::Double(0.5),
        Value::Double(f64::NAN),
        Value::Double(1e300),
        Value::Bool(true),
        Value::Str("none".into()),
        Value::Ints(vec![]),
        Value::Ints(vec![0, 1]),
        Value::Ints(vec![i64::MAX; 2]),
        Value::Ints(vec![i64::MIN, i64::MIN, 1 << 32, -(1 << 32)]),
        Value::Ints(vec![i64::MAX, i64::MIN, -1, 0, 1 << 31, 7, 8, 9, 10]),
        Value::Doubles(vec![0.5, f64::INFINITY]),
        Value::Bools(vec![true, false]),
        list(&[]),
        list(&[0, 0]),
        list(&[1, 2, 3]),
        tensor(DType::F32, &[]),
        tensor(DType::F32, &[1; 8]),
        tensor(DType::F32, &[4, 0]),
        tensor(DType::F32, &[1, 4, 4, 4]),
        tensor(DType::F32, &[1 << 25]),
        tensor(DType::F16, &[8192, 4096]),
        tensor(DType::I64, &[4, 4]),
        tensor(DType::Bool, &[4]),
        tensor(DType::U8, &[4, 4]),
    ]
}

fn outputs() -> Vec<Value> {
    let square = [DType::F32, DType::F16, DType::I64, DType::U8, DType::Bool].map(|dtype| tensor(dtype, &[4, 4]));
    let others = [tensor(DType::I64, &[]), Value::SymInt, Value::Int(3), Value::List(vec![])];
    square.into_iter().chain(others).collect()
}

fn graph(op: &Op, args: &[usize], output: &Value) -> Graph {
    let mut values = fillers();
    let inputs = (0..values.len() as u32).map(ValueId);
    let inputs = inputs.filter(|id| matches!(values[id.index()], Value::Tensor(_) | Value::SymInt)).collect();
    values.push(output.clone());
    let mut args: Vec<ValueId> = args.iter().map(|&index| ValueId(index as u32)).collect();
    args.push(ValueId(values.len() as u32 - 1));
    let nodes = vec![Node { op: op.name.into(), args }];
    Graph { values, nodes, inputs, outputs: vec![ValueId(0)], constants: Vec::<Constant>::new() }
}

fn table() -> impl Iterator<Item = &'static Op> {
    TABLE.iter().flat_map(|family| family.iter())
}

/// Plans all graphs and fails with the first of those that panic or whose error does not name the operator.
fn plan_all(op: &Op, graphs: impl Iterator<Item = Graph>) {
    for graph in graphs {
        graph.check().unwrap();
        let result = catch_unwind(AssertUnwindSafe(|| targets::plan(&graph)));
        match result {
            Err(_) => panic!("{graph}"),
            Ok(Err(error)) => {
                let text = error.to_string();
                assert!(text.contains(op.name) || text.starts_with("position in"), "{text}\n{graph}");
            }
            Ok(Ok(())) => {}
        }
    }
}

#[test]
fn of_one_kind_and_any_number() {
    for op in table() {
        let kinds = 0..fillers().len();
        let lists = kinds.flat_map(|kind| LENGTHS.into_iter().map(move |count| vec![kind; count]));
        plan_all(op, lists.flat_map(|args| outputs().into_iter().map(move |out| graph(op, &args, &out))));
    }
}

#[test]
fn of_one_wrong_kind_among_tensors_and_nothing_or_zeros() {
    const NOTHING: usize = 2;
    const ZERO: usize = 3;
    for (op, out) in table().flat_map(|op| outputs().into_iter().take(5).step_by(3).map(move |out| (op, out))) {
        for (tensors, rest) in [(1, NOTHING), (2, NOTHING), (3, NOTHING), (1, ZERO), (2, ZERO)] {
            let usual: Vec<usize> = (0..12).map(|place| if place < tensors { 0 } else { rest }).collect();
            let wrong = (0..fillers().len()).flat_map(|kind| (0..12).map(move |place| (kind, place)));
            let replace = |(kind, place): (usize, usize)| {
                let mut args = usual.clone();
                args[place] = kind;
                graph(op, &args, &out)
            };
            plan_all(op, wrong.map(replace));
        }
    }
}
