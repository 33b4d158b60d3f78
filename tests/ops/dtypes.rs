//! Every operator of the table with every element type: what the table claims has a case, and what it does not is refused.

use std::collections::{BTreeMap, BTreeSet};

use executorch_webgpu::error::Result;
use executorch_webgpu::gpu::Caps;
use executorch_webgpu::graph::DType;
use executorch_webgpu::ops::{TABLE, find};
use executorch_webgpu::options::Options;
use executorch_webgpu::plan::Plan;
use executorch_webgpu::shader::assemble;
use executorch_webgpu::{passes, payload};
use naga::valid::{Capabilities, ValidationFlags, Validator};

use crate::cases::ALL;
use crate::common::model::models_of;
use crate::common::writer::Entry;
use crate::common::{Data, Model};

const FAMILIES: &[&[fn()]] = &[
    crate::attention::TESTS,
    crate::binary::TESTS,
    crate::symbolic::TESTS,
    crate::cast::TESTS,
    crate::convolution::TESTS,
    crate::embedding_q4::TESTS,
    crate::fill::TESTS,
    crate::join::TESTS,
    crate::linear::TESTS,
    crate::linear_q8::TESTS,
    crate::norm::TESTS,
    crate::pool::TESTS,
    crate::q8::TESTS,
    crate::qparams::TESTS,
    crate::quantize::TESTS,
    crate::reduce::TESTS,
    crate::reindex::TESTS,
    crate::rope::TESTS,
    crate::sample::TESTS,
    crate::sdpa::TESTS,
    crate::softmax::TESTS,
    crate::take::TESTS,
    crate::training::TESTS,
    crate::unary::TESTS,
    crate::view::TESTS,
];

fn cases() -> Vec<Model> {
    models_of(&FAMILIES.concat())
}

/// The type of an argument that is a tensor, or of the first of a list.
fn dtype(model: &Model, id: usize) -> Option<DType> {
    match &model.payload.values[id] {
        Entry::Tensor { dtype, .. } => Some(*dtype),
        Entry::List(items) => dtype_of_first(model, items),
        _ => None,
    }
}

fn dtype_of_first(model: &Model, items: &[usize]) -> Option<DType> {
    items.first().and_then(|&id| dtype(model, id))
}

/// The type that the table's claim is about: the first operand's, or the result's where none is a tensor.
fn claimed(model: &Model, args: &[usize]) -> Option<DType> {
    dtype(model, args[0]).or_else(|| dtype(model, args[args.len() - 1]))
}

#[test]
fn every_claimed_type_has_a_case() {
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for model in cases() {
        for (op, args) in &model.payload.calls {
            let types = seen.entry(op.clone()).or_default();
            types.extend(claimed(&model, args).map(|dtype| dtype.to_string()));
        }
    }
    let none = BTreeSet::new();
    let missing: Vec<String> = TABLE
        .iter()
        .flat_map(|family| family.iter())
        .flat_map(|op| op.dtypes.iter().map(move |dtype| (op.name, dtype.to_string())))
        .filter(|(_, dtype)| dtype != "float64") // The device holds doubles as singles.
        .filter(|(op, dtype)| !seen.get(*op).unwrap_or(&none).contains(dtype))
        .map(|(op, dtype)| format!("{op} {dtype}"))
        .collect();
    assert!(missing.is_empty(), "{} have no case:\n{}", missing.len(), missing.join("\n"));
}

/// The tensors among the arguments of a call, those of lists too.
fn tensors(model: &Model, id: usize) -> Vec<usize> {
    match &model.payload.values[id] {
        Entry::Tensor { .. } => vec![id],
        Entry::List(items) => items.iter().flat_map(|&item| tensors(model, item)).collect(),
        _ => vec![],
    }
}

fn plan(model: &Model, caps: &Caps) -> Result<Plan> {
    let options = Options::default();
    let graph = passes::run(payload::parse(&model.payload.write())?, caps, &options)?;
    Plan::new(graph, caps, &options)
}

/// What any argument of another type leads to: sound kernels, or a sentence that names the operator and the type.
#[test]
fn every_type_of_every_argument_runs_or_is_refused() {
    let mut forms: BTreeMap<String, (Model, usize)> = BTreeMap::new();
    for model in cases() {
        for (place, (op, _)) in model.payload.calls.iter().enumerate() {
            let known = forms.entry(op.clone()).or_insert_with(|| (model.clone(), place));
            if model.payload.calls.len() < known.0.payload.calls.len() {
                *known = (model.clone(), place);
            }
        }
    }
    let mut wrong = Vec::new();
    let mut sound = BTreeSet::new();
    for (op, (model, place)) in &forms {
        let args = &model.payload.calls[*place].1;
        for (argument, id) in
            args.iter().enumerate().flat_map(|(at, &id)| tensors(model, id).into_iter().map(move |id| (at, id)))
        {
            for dtype in ALL {
                let mut changed = model.clone();
                let Entry::Tensor { dtype: own, .. } = &mut changed.payload.values[id] else { unreachable!() };
                *own = dtype;
                for caps in [Caps::minimal(), Caps::full()] {
                    let form = format!("{op}: argument {argument} in {dtype}");
                    match plan(&changed, &caps) {
                        Ok(plan) => {
                            let held = match dtype {
                                DType::F64 => DType::F32,
                                DType::I64 => DType::I32,
                                other => other,
                            };
                            if argument == 0 && !find(op).unwrap().dtypes.contains(&held) {
                                wrong.push(format!("{form} is taken, but not claimed"));
                            }
                            for kernel in plan.kernels() {
                                let text = assemble(kernel);
                                if sound.insert(text.clone())
                                    && let Err(why) = validated(&text)
                                {
                                    wrong.push(format!("{form}: {why}"));
                                }
                            }
                        }
                        Err(error) => {
                            let text = error.to_string();
                            let named = model.payload.calls.iter().any(|(op, _)| text.contains(op.as_str()));
                            if !named || !text.contains(&dtype.to_string()) {
                                wrong.push(format!("{form} is refused so: {text}"));
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} forms:\n{}", wrong.len(), wrong.join("\n"));
}

/// Results that would be cut, or compared after they are cut: refused.
#[test]
fn results_that_do_not_hold_what_is_computed_are_refused() {
    let x = |dtype| Data::random(dtype, &[4, 4], (0.0, 3.0), 1);
    let (half, none, one) = (Entry::Double(0.5), Entry::Null, Entry::Int(1));
    let dims = [Entry::Ints(vec![0]), Entry::Bool(true)];
    for (op, operands, args, out, shape) in [
        ("aten.eq.Tensor", vec![DType::F32; 2], vec![], DType::I32, [4, 4]),
        ("aten.logical_not.default", vec![DType::F32], vec![], DType::F32, [4, 4]),
        ("aten.abs.default", vec![DType::F32], vec![], DType::I32, [4, 4]),
        ("aten.relu.default", vec![DType::I32], vec![], DType::Bool, [4, 4]),
        ("aten.pow.Tensor_Scalar", vec![DType::I32], vec![half.clone()], DType::I32, [4, 4]),
        ("aten.clamp.default", vec![DType::I32], vec![half.clone(), none], DType::I32, [4, 4]),
        ("aten.add.Tensor", vec![DType::I32, DType::F32], vec![one.clone()], DType::I32, [4, 4]),
        ("aten.add.Tensor", vec![DType::I32; 2], vec![half.clone()], DType::I32, [4, 4]),
        ("aten.mul.Tensor", vec![DType::I32], vec![half], DType::I32, [4, 4]),
        ("aten.sub.Tensor", vec![DType::I32; 2], vec![one], DType::Bool, [4, 4]),
        ("aten.where.self", vec![DType::Bool, DType::F32, DType::F32], vec![], DType::I32, [4, 4]),
        ("aten.sum.dim_IntList", vec![DType::F32], dims.to_vec(), DType::I64, [1, 4]),
        ("aten.amax.default", vec![DType::F32], dims.to_vec(), DType::I32, [1, 4]),
    ] {
        let operands: Vec<Data> = operands.into_iter().map(x).collect();
        let model = Model::single(op, &operands.iter().collect::<Vec<_>>(), &args, out, &shape);
        let text = plan(&model, &Caps::minimal()).err().unwrap_or_else(|| panic!("{op} gives {out}")).to_string();
        assert!(text.contains(op) && text.contains(&format!("the result is {out}, expected")), "{text}");
    }
}

fn validated(text: &str) -> std::result::Result<(), String> {
    let module = naga::front::wgsl::parse_str(text).map_err(|error| error.emit_to_string(text))?;
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all());
    validator.validate(&module).map(drop).map_err(|error| error.emit_to_string(text))
}
