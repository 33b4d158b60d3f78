//! Element types and odd sizes where tensors enter and leave. A program without operators hands its input back.

use executorch_webgpu::exec::Program;
use executorch_webgpu::gpu::Profile;
use executorch_webgpu::graph::DType::{self, Bool, F16, F32, F64, I8, I32, I64, U8};
use executorch_webgpu::options::Options;

use crate::common::{Data, Model};
use crate::host::{self, call};

const TYPES: [DType; 8] = [Bool, U8, I8, I32, I64, F16, F32, F64];

/// Host type and program type that convert to one another.
const CONVERSIONS: [(DType, DType); 8] =
    [(I32, I64), (I64, I32), (F32, F64), (F64, F32), (F16, F32), (F32, F16), (F64, F16), (F16, F64)];

fn identity(dtype: DType, dims: &[u32]) -> Model {
    let mut m = Model::new();
    let x = m.input(dtype, dims);
    m.output(x);
    m
}

fn load(model: &Model, profile: Profile) -> Program {
    let program = model.load_with(Options::default(), profile).unwrap().program;
    program.fill_activations(0xFF).unwrap();
    program
}

fn extremes(dtype: DType) -> Vec<f64> {
    match dtype {
        Bool => vec![0.0, 1.0, 1.0, 0.0, 1.0],
        U8 => vec![0.0, 255.0, 128.0, 7.0, 1.0],
        I8 => vec![-128.0, 127.0, -1.0, 0.0, 5.0],
        I32 | I64 => vec![f64::from(i32::MIN), f64::from(i32::MAX), -1.0, 0.0, 3.0],
        F16 | F32 | F64 => vec![-0.0, f64::INFINITY, f64::NEG_INFINITY, -65504.0, f64::NAN],
    }
}

#[test]
fn every_type_comes_back_bit_by_bit_at_every_odd_size() {
    for profile in [Profile::Full, Profile::Minimal] {
        for dtype in TYPES {
            for count in [0, 1, 2, 3, 5, 7, 13, 67] {
                let values = extremes(dtype).into_iter().cycle().take(count as usize).collect();
                let x = Data::new(dtype, &[count], values);
                let found = call(&mut load(&identity(dtype, &[count]), profile), &[&x], &[dtype]).unwrap();
                assert_eq!(found.tensors[0], (vec![count], x.bytes()), "{dtype} {count}");
            }
        }
    }
}

#[test]
fn types_of_one_kind_convert_and_all_others_are_refused_by_name() {
    for inner in TYPES {
        let model = identity(inner, &[4]);
        let mut program = load(&model, Profile::Full);
        let own = Data::random(inner, &[4], (0.0, 1.0), 3);
        let first = call(&mut program, &[&own], &[inner]).unwrap();
        for outer in TYPES {
            let x = Data::random(outer, &[4], (0.0, 1.0), 4);
            let converts = inner == outer || CONVERSIONS.contains(&(outer, inner));
            match call(&mut program, &[&x], &[outer]) {
                Ok(found) if converts => {
                    let held = if inner == F64 { F32 } else { inner };
                    let through = Data::new(held, &[4], x.values.clone());
                    assert_eq!(found.data(0), Data::new(outer, &[4], through.values), "{outer} in {inner}");
                }
                Err(error) if !converts => {
                    let text = error.to_string();
                    let named = text.contains(&outer.to_string()) && text.contains(&inner.to_string());
                    assert!(named && text.contains("input 0"), "{text}");
                    let text = call(&mut program, &[&own], &[outer]).unwrap_err().to_string();
                    assert!(text.contains("output 0") && text.contains(&outer.to_string()), "{text}");
                }
                other => panic!("{outer} in a program of {inner}: {other:?}"),
            }
            assert_eq!(call(&mut program, &[&own], &[inner]).unwrap(), first);
        }
    }
}

#[test]
fn integers_beyond_32_bits_are_refused_by_value_and_change_nothing() {
    let mut program = load(&identity(I64, &[3]), Profile::Full);
    let good = Data::i64(&[3], &[-5, i64::from(i32::MIN), i64::from(i32::MAX)]);
    for bad in [1i64 << 31, -(1 << 31) - 1, i64::MIN, i64::MAX, 1 << 32] {
        let bytes: Vec<u8> = [1, bad, 2].iter().flat_map(|n| n.to_le_bytes()).collect();
        let mut results = host::Results::new(&[I64]);
        let error = program.execute(&[host::tensor(&good, &bytes)], &mut results).unwrap_err();
        assert!(error.to_string().contains(&bad.to_string()) && error.status() == 4, "{error}");
        assert_eq!(results, host::Results::new(&[I64]), "outputs are written on success only");
        assert_eq!(call(&mut program, &[&good], &[I64]).unwrap().data(0), good);
    }
}

#[test]
fn numbers_beyond_a_narrower_type_become_infinite() {
    let x = Data::new(F64, &[4], vec![1e300, -1e300, 1e-300, 0.1]);
    let found = call(&mut load(&identity(F32, &[4]), Profile::Full), &[&x], &[F64]).unwrap();
    assert_eq!(found.data(0).values, [f64::INFINITY, f64::NEG_INFINITY, 0.0, f64::from(0.1f32)]);
    let x = Data::new(F32, &[2], vec![65520.0, 65519.0]);
    let found = call(&mut load(&identity(F16, &[2]), Profile::Full), &[&x], &[F32]).unwrap();
    assert_eq!(found.data(0).values, [f64::INFINITY, 65504.0]);
}

#[test]
fn tensors_without_elements_pass() {
    for dims in [&[0][..], &[3, 0, 2], &[0, 0]] {
        let x = Data::f32(dims, vec![]);
        let found = call(&mut load(&identity(F32, dims), Profile::Full), &[&x], &[F32]).unwrap();
        assert_eq!(found.tensors[0], (dims.to_vec(), vec![]));
    }
}

#[test]
fn an_input_a_constant_and_one_result_twice_are_outputs() {
    let (x, weight) = (Data::random(F32, &[2, 3], (-1.0, 1.0), 5), Data::random(F16, &[5], (-1.0, 1.0), 6));
    let mut m = Model::new();
    let (a, constant) = (m.input(F32, &[2, 3]), m.constant(&weight));
    let y = m.tensor(F32, &[2, 3]);
    m.op("aten.neg.default", &[a, y]);
    [a, constant, y, a, y].into_iter().for_each(|id| m.output(id));
    let negated = Data::f32(&[2, 3], x.values.iter().map(|x| -x).collect());
    for _ in 0..2 {
        m.check(&[&x], |out| assert_eq!(out, [x.clone(), weight.clone(), negated.clone(), x.clone(), negated.clone()]));
    }
}

#[test]
fn an_input_that_the_program_overwrites_is_its_output() {
    let x = Data::random(F32, &[7], (-1.0, 1.0), 7);
    let mut m = Model::new();
    let a = m.input(F32, &[7]);
    m.op("aten.neg.default", &[a, a]);
    m.output(a);
    let negated = Data::f32(&[7], x.values.iter().map(|x| -x).collect());
    m.check(&[&x], |out| assert_eq!(out[0], negated));
}
