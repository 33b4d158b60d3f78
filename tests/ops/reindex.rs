use executorch_webgpu::graph::DType;

use crate::cases::{ALL, check_in_turn, coordinates, flat, sizes};
use crate::common::writer::Entry;
use crate::common::{Data, Model, assert_close};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] = &[
    permutations,
    slices,
    selections,
    splits,
    expansions,
    an_expansion_to_the_size_of_another_tensor,
    repetitions,
    reversals,
    windows,
    channels_become_pixels,
];

/// `want[i] = x[source(coordinates of i)]`, for results of shape `dims`.
fn moved(x: &Data, dims: &[u32], source: impl Fn(&[usize]) -> Vec<usize>) -> Vec<f64> {
    let count = dims.iter().product::<u32>() as usize;
    (0..count).map(|i| x.values[flat(&source(&coordinates(i, dims)), &x.dims)]).collect()
}

/// Every element type: the result has shape `dims` and holds `x[source(..)]`, bit for bit.
fn check(op: &str, shape: &[u32], args: &[Entry], dims: &[u32], source: impl Fn(&[usize]) -> Vec<usize>) {
    for dtype in ALL {
        let x = Data::random(dtype, shape, (0.0, 100.0), 11);
        let want = moved(&x, dims, &source);
        Model::single(op, &[&x], args, dtype, dims).check(&[&x], |got| assert_close(&got[0], dims, &want, (0.0, 0.0)));
    }
}

/// A model bound to 9 in the first dimension, run at several sizes of it.
fn changing(op: &str, args: &[Entry], dims: impl Fn(u32) -> Vec<u32>, source: impl Fn(u32, &[usize]) -> Vec<usize>) {
    let make = |n: u32| [Data::random(DType::F16, &[n, 3, 4], (0.0, 100.0), u64::from(n))];
    let model = Model::single(op, &[&make(9)[0]], args, DType::F16, &dims(9));
    check_in_turn(&model, &sizes(9).map(make), |[x], got| {
        let n = x.dims[0];
        let want = moved(x, &dims(n), |at| source(n, at));
        assert_close(&got[0], &dims(n), &want, (0.0, 0.0));
    });
}

fn ints(items: &[i64]) -> Entry {
    Entry::Ints(items.to_vec())
}

fn refused(op: &str, shape: &[u32], args: &[Entry], dims: &[u32], words: &str) {
    let x = Data::random(DType::F32, shape, (0.0, 1.0), 1);
    let text = Model::single(op, &[&x], args, DType::F32, dims).load().err().unwrap().to_string();
    assert!(text.contains(op) && text.contains(words), "{text}");
}

#[test]
fn permutations() {
    let op = "aten.permute_copy.default";
    let cases: [(&[u32], &[i64]); 12] = [
        (&[2, 3, 4], &[2, 0, 1]),
        (&[1, 8, 4, 16], &[0, 2, 1, 3]),
        (&[3, 5], &[-1, 0]),
        (&[2, 3, 4, 5], &[3, 1, 0, 2]),
        (&[7], &[0]),
        (&[2, 1, 2, 1, 3, 1, 2, 2], &[7, 6, 5, 4, 3, 2, 1, 0]),
        (&[37, 0, 41], &[2, 1, 0]),
        // Tiles: whole and in part, of words that are whole for some types.
        (&[130, 68], &[1, 0]),
        (&[2, 36, 5, 44], &[0, 3, 2, 1]),
        (&[3, 17, 2, 34], &[3, 2, 0, 1]),
        (&[2, 64, 6, 11], &[0, 2, 3, 1]),
        (&[33, 70], &[1, 0]),
    ];
    for (shape, order) in cases {
        let axes: Vec<usize> = order.iter().map(|&d| d.rem_euclid(shape.len() as i64) as usize).collect();
        let dims: Vec<u32> = axes.iter().map(|&a| shape[a]).collect();
        let source = |at: &[usize]| {
            let mut from = vec![0; at.len()];
            axes.iter().zip(at).for_each(|(&axis, &c)| from[axis] = c);
            from
        };
        check(op, shape, &[ints(order)], &dims, source);
    }
    check("aten.permute.default", &[37, 41], &[ints(&[1, 0])], &[41, 37], |at| vec![at[1], at[0]]);
    check("aten.permute_copy.default", &[], &[ints(&[])], &[], |_| vec![]);
    check("aten.t_copy.default", &[3, 5], &[], &[5, 3], |at| vec![at[1], at[0]]);
    changing(op, &[ints(&[1, 0, 2])], |n| vec![3, n, 4], |_, at| vec![at[1], at[0], at[2]]);
    refused(op, &[2, 3], &[ints(&[0, 0])], &[2, 2], "no order");
}

fn sliced(shape: &[u32], [dim, start, end, step]: [i64; 4], length: u32) {
    let axis = dim.rem_euclid(shape.len() as i64) as usize;
    let first = if start < 0 { start + i64::from(shape[axis]) } else { start };
    let mut dims = shape.to_vec();
    dims[axis] = length;
    let args = [dim, start, end, step].map(Entry::Int);
    check("aten.slice_copy.Tensor", shape, &args, &dims, |at| {
        let mut from = at.to_vec();
        from[axis] = first as usize + at[axis] * step as usize;
        from
    });
}

#[test]
fn slices() {
    sliced(&[3, 8, 4], [1, 1, 5, 1], 4);
    sliced(&[3, 8, 4], [-1, 1, 3, 1], 2);
    sliced(&[3, 8, 4], [1, 0, 8, 2], 4);
    sliced(&[3, 8, 4], [1, 1, -1, 1], 6);
    sliced(&[3, 8, 4], [1, -3, i64::MAX, 2], 2);
    sliced(&[37, 41], [0, 5, 36, 3], 11);
    sliced(&[37, 41], [1, 40, 1 << 40, 7], 1);
    sliced(&[16, 16], [1, 8, 12, 1], 4);
    sliced(&[5, 7], [0, 3, 2, 1], 0);
    let defaults = [Entry::Int(0), Entry::Null, Entry::Null, Entry::Int(1)];
    check("aten.slice_copy.Tensor", &[3, 5], &defaults, &[3, 5], |at| at.to_vec());
    let doubles = [Entry::Int(1), Entry::Double(1.0), Entry::Double(4.0), Entry::Double(1.0)];
    check("aten.slice_copy.Tensor", &[3, 5], &doubles, &[3, 3], |at| vec![at[0], at[1] + 1]);
}

#[test]
fn slices_of_changing_tensors_clamp_to_what_is_there() {
    let args = [0, -4, i64::MAX, 1].map(Entry::Int);
    let first = |n: u32| n.saturating_sub(4) as usize;
    changing("aten.slice_copy.Tensor", &args, |n| vec![n.min(4), 3, 4], |n, at| vec![at[0] + first(n), at[1], at[2]]);
}

#[test]
fn bad_slices_are_refused() {
    let op = "aten.slice_copy.Tensor";
    refused(op, &[4], &[0, 0, 4, 0].map(Entry::Int), &[4], "step 0");
    refused(op, &[4], &[1, 0, 4, 1].map(Entry::Int), &[4], "dimension 1");
    let fraction = [Entry::Int(0), Entry::Double(0.5), Entry::Int(4), Entry::Int(1)];
    refused(op, &[4], &fraction, &[4], "argument 2 is 0.5");
    refused(op, &[], &[0, 0, 1, 1].map(Entry::Int), &[], "no dimensions");
}

/// The start, the end or the index comes from an integer tensor that each call gives.
#[test]
fn positions_that_each_call_gives() {
    let mut m = Model::new();
    let x = m.input(DType::F16, &[9, 6]);
    let at = m.input(DType::I64, &[1]);
    let (zero, one, start, end) = (m.int(0), m.int(1), m.symint(), m.symint());
    m.op("et_vk.select_as_symint.default", &[at, zero, zero, start]);
    let two = m.int(2);
    m.op("add", &[start, two, end]);
    let (rows, row, tail) = (m.tensor(DType::F16, &[2, 6]), m.tensor(DType::F16, &[6]), m.tensor(DType::F16, &[9, 6]));
    m.op("aten.slice_copy.Tensor", &[x, zero, start, end, one, rows]);
    m.op("aten.select_copy.int", &[x, zero, start, row]);
    let open = m.null();
    m.op("aten.slice_copy.Tensor", &[x, zero, start, open, one, tail]);
    [rows, row, tail].into_iter().for_each(|id| m.output(id));
    let data = Data::random(DType::F16, &[9, 6], (0.0, 100.0), 1);
    let calls = [0i64, 3, 7, 3, 4, 0].map(|n| [data.clone(), Data::i64(&[1], &[n])]);
    check_in_turn(&m, &calls, |[x, at], got| {
        let n = at.values[0] as usize;
        assert_close(&got[0], &[2, 6], &x.values[n * 6..(n + 2) * 6], (0.0, 0.0));
        assert_close(&got[1], &[6], &x.values[n * 6..(n + 1) * 6], (0.0, 0.0));
        assert_close(&got[2], &[9 - n as u32, 6], &x.values[n * 6..], (0.0, 0.0));
    });
}

#[test]
fn selections() {
    let op = "aten.select_copy.int";
    let args = |dim: i64, index: Entry| [Entry::Int(dim), index];
    check(op, &[3, 8, 4], &args(0, Entry::Int(1)), &[8, 4], |at| vec![1, at[0], at[1]]);
    check(op, &[3, 8, 4], &args(1, Entry::Double(2.0)), &[3, 4], |at| vec![at[0], 2, at[1]]);
    check(op, &[3, 8, 4], &args(-1, Entry::Int(3)), &[3, 8], |at| vec![at[0], at[1], 3]);
    check(op, &[3, 8, 4], &args(1, Entry::Int(-1)), &[3, 4], |at| vec![at[0], 7, at[1]]);
    check(op, &[5], &args(0, Entry::Int(4)), &[], |_| vec![4]);
    let last = |n: u32, at: &[usize]| vec![n as usize - 1, at[0], at[1]];
    changing(op, &args(0, Entry::Int(-1)), |_| vec![3, 4], last);
    refused(op, &[3, 8], &args(0, Entry::Int(3)), &[8], "index 3 is outside");
    refused(op, &[3, 8], &args(0, Entry::Double(1.5)), &[8], "argument 2 is 1.5");
}

#[test]
fn splits() {
    let cases: [(&[u32], &[i64], i64); 4] =
        [(&[1, 8, 4, 4], &[2, 3, 3], 1), (&[5, 4], &[3, 2], 0), (&[2, 9], &[4, 0, 5], -1), (&[3, 7], &[1, 1, 5], 1)];
    for (shape, parts, dim) in cases {
        for dtype in ALL {
            let x = Data::random(dtype, shape, (0.0, 100.0), 5);
            let axis = dim.rem_euclid(shape.len() as i64) as usize;
            let shapes: Vec<Vec<u32>> = parts
                .iter()
                .map(|&n| {
                    let mut dims = shape.to_vec();
                    dims[axis] = n as u32;
                    dims
                })
                .collect();
            let mut m = Model::new();
            let (id, list, at) = (m.input(dtype, shape), m.ints(parts), m.int(dim));
            let outputs: Vec<usize> = shapes.iter().map(|dims| m.tensor(dtype, dims)).collect();
            let result = m.list(&outputs);
            m.op("aten.split_with_sizes_copy.default", &[id, list, at, result]);
            outputs.iter().for_each(|&id| m.output(id));
            m.check(&[&x], |got| {
                let mut first = 0;
                for (dims, part) in shapes.iter().zip(got) {
                    let want = moved(&x, dims, |at| {
                        let mut from = at.to_vec();
                        from[axis] += first;
                        from
                    });
                    assert_close(part, dims, &want, (0.0, 0.0));
                    first += dims[axis] as usize;
                }
            });
        }
    }
}

#[test]
fn expansions() {
    let op = "aten.expand_copy.default";
    let args = |size: &[i64]| [ints(size), Entry::Bool(false)];
    check(op, &[1, 4], &args(&[3, 4]), &[3, 4], |at| vec![0, at[1]]);
    check(op, &[2, 1, 5], &args(&[2, 4, -1]), &[2, 4, 5], |at| vec![at[0], 0, at[2]]);
    check(op, &[4], &args(&[3, 4]), &[3, 4], |at| vec![at[1]]);
    check(op, &[3, 1], &args(&[2, -1, 7]), &[2, 3, 7], |at| vec![at[1], 0]);
    check(op, &[], &args(&[5]), &[5], |_| vec![]);
    check(op, &[1], &args(&[0]), &[0], |_| vec![0]);
    changing(op, &args(&[2, -1, 3, 4]), |n| vec![2, n, 3, 4], |_, at| at[1..].to_vec());
    changing(op, &args(&[2, 9, 3, 4]), |n| vec![2, n, 3, 4], |_, at| at[1..].to_vec());
    refused(op, &[3, 4], &args(&[5, 4]), &[5, 4], "does not expand");
}

#[test]
fn an_expansion_to_the_size_of_another_tensor() {
    let mut m = Model::new();
    let (x, y) = (m.input(DType::F32, &[1, 3]), m.input(DType::F32, &[9, 1]));
    let (zero, size, three, no) = (m.int(0), m.symint(), m.int(3), m.boolean(false));
    m.op("sym_size.int", &[y, zero, size]);
    let shape = m.list(&[size, three]);
    let out = m.tensor(DType::F32, &[9, 3]);
    m.op("aten.expand_copy.default", &[x, shape, no, out]);
    m.output(out);
    let make = |n: u32| {
        let random = |dims: &[u32]| Data::random(DType::F32, dims, (0.0, 1.0), u64::from(n));
        [random(&[1, 3]), random(&[n, 1])]
    };
    check_in_turn(&m, &sizes(9).map(make), |[x, y], got| {
        let want = x.values.repeat(y.dims[0] as usize);
        assert_close(&got[0], &[y.dims[0], 3], &want, (0.0, 0.0));
    });
}

#[test]
fn repetitions() {
    let op = "aten.repeat.default";
    let wrapped = |shape: &'static [u32]| {
        move |at: &[usize]| {
            let own = &at[at.len() - shape.len()..];
            own.iter().zip(shape).map(|(&c, &n)| c % n as usize).collect::<Vec<_>>()
        }
    };
    check(op, &[3], &[ints(&[2])], &[6], wrapped(&[3]));
    check(op, &[3, 5], &[ints(&[2, 2])], &[6, 10], wrapped(&[3, 5]));
    check(op, &[3, 5], &[ints(&[2, 3, 1])], &[2, 9, 5], wrapped(&[3, 5]));
    check(op, &[2, 2, 2, 2, 2], &[ints(&[2, 2, 2, 2, 2])], &[4, 4, 4, 4, 4], wrapped(&[2, 2, 2, 2, 2]));
    check(op, &[3, 5], &[ints(&[0, 2])], &[0, 10], wrapped(&[3, 5]));
    let args = [ints(&[2, 1, 3])];
    changing(op, &args, |n| vec![2 * n, 3, 12], |n, at| vec![at[0] % n as usize, at[1], at[2] % 4]);
}

#[test]
fn reversals() {
    let op = "aten.flip.default";
    check(op, &[37, 41], &[ints(&[-1])], &[37, 41], |at| vec![at[0], 40 - at[1]]);
    check(op, &[5, 8], &[ints(&[0])], &[5, 8], |at| vec![4 - at[0], at[1]]);
    check(op, &[3, 4, 5], &[ints(&[0, 2])], &[3, 4, 5], |at| vec![2 - at[0], at[1], 4 - at[2]]);
    check(op, &[4, 6], &[ints(&[0, 1])], &[4, 6], |at| vec![3 - at[0], 5 - at[1]]);
    check(op, &[2, 0], &[ints(&[0])], &[2, 0], |at| at.to_vec());
    changing(op, &[ints(&[0])], |n| vec![n, 3, 4], |n, at| vec![n as usize - 1 - at[0], at[1], at[2]]);
    refused(op, &[3], &[ints(&[0, -1])], &[3], "named twice");
}

#[test]
fn windows() {
    let op = "aten.unfold_copy.default";
    let args = |dim: i64, size: i64, step: i64| [dim, size, step].map(Entry::Int);
    check(op, &[7], &args(0, 3, 2), &[3, 3], |at| vec![at[0] * 2 + at[1]]);
    check(op, &[3, 8, 2], &args(1, 4, 1), &[3, 5, 2, 4], |at| vec![at[0], at[1] + at[3], at[2]]);
    refused(op, &[3], &args(0, 4, 1), &[0, 4], "windows of 4");
}

#[test]
fn channels_become_pixels() {
    let op = "aten.pixel_shuffle.default";
    let source = |r: usize| {
        move |at: &[usize]| {
            let mut from = at.to_vec();
            let [.., channel, row, column] = &mut from[..] else { panic!("rank") };
            *channel = *channel * r * r + *row % r * r + *column % r;
            (*row, *column) = (*row / r, *column / r);
            from
        }
    };
    check(op, &[1, 8, 2, 3], &[Entry::Int(2)], &[1, 2, 4, 6], source(2));
    check(op, &[4, 2, 2], &[Entry::Int(2)], &[1, 4, 4], source(2));
    check(op, &[2, 3, 9, 5, 7], &[Entry::Int(3)], &[2, 3, 1, 15, 21], source(3));
    check(op, &[2, 3, 5, 7], &[Entry::Int(1)], &[2, 3, 5, 7], source(1));
    changing(op, &[Entry::Int(1)], |n| vec![n, 3, 4], |_, at| source(1)(at));
    refused(op, &[1, 6, 2, 2], &[Entry::Int(2)], &[1, 1, 4, 4], "expected a multiple of 4");
    refused(op, &[1, 6, 2, 2], &[Entry::Int(0)], &[1, 1, 4, 4], "by 0");
    refused(op, &[6, 2], &[Entry::Int(1)], &[6, 2], "[6, 2] by 1");
    refused(op, &[1, 0, 2, 2], &[Entry::Int(40_000)], &[1, 0, 4, 4], "2^31 - 1 elements");
}

#[test]
fn channels_of_changing_pictures_become_pixels() {
    let make = |(n, rows): (u32, u32)| [Data::random(DType::F32, &[n, 4, rows, 3], (0.0, 100.0), u64::from(rows))];
    let m =
        Model::single("aten.pixel_shuffle.default", &[&make((2, 7))[0]], &[Entry::Int(2)], DType::F32, &[2, 1, 14, 6]);
    check_in_turn(&m, &[(2, 7), (1, 3), (2, 1), (2, 7)].map(make), |[x], got| {
        let dims = [x.dims[0], 1, 2 * x.dims[2], 6];
        let want = moved(x, &dims, |at| vec![at[0], at[2] % 2 * 2 + at[3] % 2, at[2] / 2, at[3] / 2]);
        assert_close(&got[0], &dims, &want, (0.0, 0.0));
    });
}
