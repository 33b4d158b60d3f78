//! Integers that enter and leave as scalars, and what is computed from them.

use executorch_webgpu::error::{Error, Result};
use executorch_webgpu::exec::{HostTensor, HostValue, Program};
use executorch_webgpu::graph::DType::{self, Bool, F32, I8, I32, I64, U8};
use executorch_webgpu::graph::Dims;

use crate::common::{Data, Model};
use crate::host::{Results, tensor};

/// `n, m -> n, n + 7, n // m`, all SymInts.
fn arithmetic() -> Program {
    let mut m = Model::new();
    let (n, divisor, seven) = (m.symint(), m.symint(), m.int(7));
    m.payload.inputs.extend([n, divisor]);
    let (sum, quotient) = (m.symint(), m.symint());
    m.op("add", &[n, seven, sum]);
    m.op("floordiv", &[n, divisor, quotient]);
    [n, sum, quotient].into_iter().for_each(|id| m.output(id));
    m.load().unwrap().program
}

fn run(program: &mut Program, inputs: &[HostValue<'_>]) -> Result<Vec<i64>> {
    let mut results = Results::new(&[I64; 3]);
    program.execute(inputs, &mut results)?;
    Ok(results.scalars.into_iter().flatten().collect())
}

#[test]
fn numbers_and_tensors_of_one_integer_are_symints() {
    let mut program = arithmetic();
    let two = HostValue::Int(2);
    assert_eq!(run(&mut program, &[HostValue::Int(-5), two.clone()]).unwrap(), [-5, 2, -3]);
    for dtype in [Bool, U8, I8, I32, I64] {
        for dims in [&[][..], &[1], &[1, 1]] {
            let x = Data::new(dtype, dims, vec![1.0]);
            let found = run(&mut program, &[tensor(&x, &x.bytes()), two.clone()]).unwrap();
            assert_eq!(found, [1, 8, 0], "{dtype} {dims:?}");
        }
    }
    let negative = Data::new(I8, &[], vec![-128.0]);
    assert_eq!(run(&mut program, &[tensor(&negative, &negative.bytes()), two]).unwrap(), [-128, -121, -64]);
}

#[test]
fn what_is_no_integer_of_32_bits_is_refused_and_changes_nothing() {
    let mut program = arithmetic();
    let two = HostValue::Int(2);
    let (real, pair) = (Data::f32(&[], vec![1.0]), Data::i64(&[2], &[1, 2]));
    let (real_bytes, pair_bytes) = (real.bytes(), pair.bytes());
    let cut = HostTensor { dtype: I64, dims: Dims::new(&[]).unwrap(), bytes: &pair_bytes[..7] };
    let bad = [
        (HostValue::None, "an integer"),
        (HostValue::Double(1.0), "an integer"),
        (tensor(&real, &real_bytes), "float32"),
        (tensor(&pair, &pair_bytes), "an integer"),
        (HostValue::Tensor(cut), "no integer"),
        (HostValue::Int(1 << 31), "2147483648"),
        (HostValue::Int(i64::MIN), "-9223372036854775808"),
        (HostValue::Int(i64::from(i32::MAX)), "2147483654"),
    ];
    for (value, word) in bad {
        let error = run(&mut program, &[value, two.clone()]).unwrap_err();
        assert!(matches!(error, Error::Shape { .. }) && error.to_string().contains(word), "{error}");
        assert_eq!(run(&mut program, &[HostValue::Int(9), two.clone()]).unwrap(), [9, 16, 4]);
    }
    let error = run(&mut program, &[HostValue::Int(9), HostValue::Int(0)]).unwrap_err();
    assert!(error.to_string().contains("division by zero"), "{error}");
    assert_eq!(run(&mut program, &[HostValue::Int(9), two]).unwrap(), [9, 16, 4]);
}

/// Rows of a table of ones to eights, rotated as position `pos - 1` says: the position is -1 while nothing tells it.
#[test]
fn a_number_that_only_a_call_tells_may_be_out_of_bounds_before() {
    let mut m = Model::new();
    let (x, n, one) = (m.input(F32, &[1, 1, 1, 2]), m.symint(), m.int(1));
    m.payload.inputs.push(n);
    let pos = m.symint();
    m.op("sub", &[n, one, pos]);
    let table = m.constant(&Data::f32(&[4, 2], (1..9).map(f64::from).collect()));
    let (y, z) = (m.tensor(F32, &[1, 1, 1, 2]), m.tensor(F32, &[1, 1, 1, 2]));
    let out = m.list(&[y, z]);
    m.op("et_vk.apply_rotary_emb_hf.default", &[x, x, table, table, pos, out]);
    m.output(y);
    let mut program = m.load().unwrap().program;
    let x = Data::f32(&[1, 1, 1, 2], vec![1.0, 0.0]);
    let bytes = x.bytes();
    let mut at = |pos: i64| {
        let mut results = Results::new(&[F32]);
        program.execute(&[tensor(&x, &bytes), HostValue::Int(pos)], &mut results)?;
        Ok::<_, Error>(results.data(0).values)
    };
    for row in 0..4 {
        let first = f64::from(2 * row as u32 + 1);
        assert_eq!(at(row + 1).unwrap(), [first, first + 1.0]);
        assert!(at(0).unwrap_err().to_string().contains("-1"));
        assert!(at(5).unwrap_err().to_string().contains('4'));
    }
}

#[test]
fn a_shape_that_only_a_call_tells_is_known_when_it_does() {
    let mut m = Model::new();
    let (x, n, two) = (m.input(F32, &[2, 6]), m.symint(), m.int(2));
    m.payload.inputs.push(n);
    let (columns, y, z) = (m.symint(), m.tensor(F32, &[6, 2]), m.tensor(F32, &[6, 2]));
    m.op("mul", &[n, two, columns]);
    let sizes = m.list(&[n, columns]);
    m.op("aten.view_copy.default", &[x, sizes, y]);
    m.op("aten.neg.default", &[y, z]);
    m.output(z);
    let data = Data::random(DType::F32, &[1, 2], (-1.0, 1.0), 1);
    let mut program = m.load().unwrap().program;
    let mut results = Results::new(&[F32]);
    program.execute(&[tensor(&data, &data.bytes()), HostValue::Int(1)], &mut results).unwrap();
    assert_eq!(results.data(0).values, data.values.iter().map(|x| -x).collect::<Vec<_>>());
    let error = program.execute(&[tensor(&data, &data.bytes()), HostValue::Int(3)], &mut results).unwrap_err();
    assert!(error.to_string().contains("aten.view_copy.default"), "{error}");
    program.execute(&[tensor(&data, &data.bytes()), HostValue::Int(1)], &mut results).unwrap();
}

/// `t = x[:n]`, `k = t.shape[0]`, `pos = 8 - k + n - 1`: always 7, whatever n is. `k` must follow `t` within one call, and
/// operators that dislike an empty `t` must not refuse the program before a call says what n is.
#[test]
fn a_size_that_follows_from_a_number_is_fresh_in_every_call() {
    let mut m = Model::new();
    let x = m.input(DType::F32, &[8, 4]);
    let length = m.input(DType::I64, &[1]);
    let value = m.input(DType::F32, &[1, 1, 1, 4]);
    let [zero, one, eight, minus, none] = [m.int(0), m.int(1), m.int(8), m.int(-1), m.null()];
    let [n, k, left, sum, pos] = [(); 5].map(|()| m.symint());
    m.op("et_vk.select_as_symint.default", &[length, zero, zero, n]);
    let t = m.tensor(DType::F32, &[8, 4]);
    m.op("aten.slice_copy.Tensor", &[x, zero, zero, n, one, t]);
    let last = m.tensor(DType::F32, &[4]);
    m.op("aten.select_copy.int", &[t, zero, minus, last]);
    m.op("sym_size.int", &[t, zero, k]);
    m.op("sub", &[eight, k, left]);
    m.op("add", &[left, n, sum]);
    m.op("sub", &[sum, one, pos]);
    let cache = m.constant(&Data::f32(&[1, 8, 1, 4], vec![0.0; 32]));
    let [q, out] = [value, m.tensor(DType::F32, &[1, 1, 1, 4])];
    let second = m.constant(&Data::f32(&[1, 8, 1, 4], vec![1.0; 32]));
    m.op("sdpa_with_kv_cache.default", &[q, value, value, cache, second, pos, one, none, none, none, none, out]);
    m.output(last);
    m.output(out);
    let mut running = m.load().unwrap();
    let rows = Data::random(DType::F32, &[8, 4], (-1.0, 1.0), 5);
    let new = Data::random(DType::F32, &[1, 1, 1, 4], (-1.0, 1.0), 6);
    for n in [3usize, 7, 1, 8, 3] {
        let got = running.run(&[&rows, &Data::i64(&[1], &[n as i64]), &new]).unwrap();
        assert_eq!(got[0].values, rows.values[(n - 1) * 4..n * 4], "n = {n}");
    }
}
