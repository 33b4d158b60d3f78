//! Operators on random shapes of ranks 0 to 8, with sizes of 0 and 1 among them, that change from call to call.

use executorch_webgpu::graph::DType;

use crate::cases::{broadcast, check_in_turn, coordinates, flat, pick};
use crate::common::data::Rng;
use crate::common::writer::Entry;
use crate::common::{Data, Model, assert_close};

const CASES: u64 = 60;
const SIZES: [u32; 14] = [0, 1, 1, 1, 2, 2, 3, 4, 5, 7, 8, 16, 17, 33];
/// Elements of an operand, if those sizes of 0 were 1.
const MOST: u64 = 6000;

/// The shape and the elements of a result.
type Answer = (Vec<u32>, Vec<f64>);

fn shape(rng: &mut Rng, least_rank: u64) -> Vec<u32> {
    let rank = least_rank + rng.below(9 - least_rank);
    loop {
        let dims: Vec<u32> = (0..rank).map(|_| SIZES[rng.below(14) as usize]).collect();
        if dims.iter().map(|&size| u64::from(size.max(1))).product::<u64>() <= MOST {
            return dims;
        }
    }
}

/// Sizes of a call up to those of `bound`: random ones, or at most 1.
#[derive(Clone, Copy)]
enum Call {
    Random,
    Least,
}

impl Call {
    fn sizes(self, bound: &[u32], rng: &mut Rng) -> Vec<u32> {
        let size = |&most: &u32| match self {
            Call::Random => rng.below(u64::from(most) + 1) as u32,
            Call::Least => most.min(1),
        };
        bound.iter().map(size).collect()
    }
}

/// Small integers, which any order of adding keeps exact.
fn numbers(dims: &[u32], seed: u64) -> Data {
    let x = Data::random(DType::F32, dims, (-8.0, 8.0), seed);
    Data::f32(dims, x.values.iter().map(|v| v.round()).collect())
}

/// `op(x.., args..)` at the bounds, at smaller sizes and at the bounds again.
fn check<const N: usize>(
    op: &str,
    args: &[Entry],
    bounds: [Vec<u32>; N],
    sizes: impl Fn(Call, &mut Rng) -> [Vec<u32>; N],
    answer: impl Fn(&[Data; N]) -> Answer,
    rng: &mut Rng,
) {
    let calls = [Call::Random, Call::Least, Call::Random].map(|call| sizes(call, rng));
    let [a, b, c] = calls;
    let shapes = [bounds.clone(), a, b, c, bounds];
    let calls = shapes.map(|shapes| shapes.map(|dims| numbers(&dims, rng.next())));
    let model = Model::single(op, &calls[0].each_ref(), args, DType::F32, &answer(&calls[0]).0);
    check_in_turn(&model, &calls, |inputs, got| {
        let (dims, want) = answer(inputs);
        let shapes: Vec<&[u32]> = inputs.iter().map(|x| &x.dims[..]).collect();
        assert_eq!(got[0].dims, dims, "{op} of {shapes:?} with {args:?}");
        assert_close(&got[0], &dims, &want, (1e-6, 1e-5));
    });
}

/// An operator of one tensor whose sizes may change, all but that of axis `still`.
fn single(
    op: &str,
    args: &[Entry],
    (bound, still): (&[u32], Option<usize>),
    answer: impl Fn(&Data) -> Answer,
    rng: &mut Rng,
) {
    let sizes = |call: Call, rng: &mut Rng| {
        let mut dims = call.sizes(bound, rng);
        still.into_iter().for_each(|axis| dims[axis] = bound[axis]);
        [dims]
    };
    check(op, args, [bound.to_vec()], sizes, |[x]| answer(x), rng);
}

/// `result[at] = x[source(at)]`
fn moved(x: &Data, dims: Vec<u32>, source: impl Fn(&[usize]) -> Vec<usize>) -> Answer {
    let count = dims.iter().product::<u32>() as usize;
    let values = (0..count).map(|i| x.values[flat(&source(&coordinates(i, &dims)), &x.dims)]).collect();
    (dims, values)
}

/// An axis, and as people write it: also from the end.
fn axis(rng: &mut Rng, rank: usize) -> (usize, Entry) {
    let axis = rng.below(rank as u64) as usize;
    (axis, Entry::Int(axis as i64 - if rng.below(2) == 0 { rank as i64 } else { 0 }))
}

fn each_seed(first: u64, test: impl Fn(&mut Rng)) {
    (0..CASES).for_each(|seed| test(&mut Rng::new(first * CASES + seed)));
}

#[test]
fn additions_of_broadcast_operands() {
    each_seed(100, |rng| {
        let whole = shape(rng, 0);
        // Some sizes of each operand are 1, some leading ones of the first are missing.
        let kept = [0, 1].map(|_| whole.iter().map(|_| rng.below(3) > 0).collect::<Vec<bool>>());
        let missing = [rng.below(whole.len() as u64 + 1) as usize, 0];
        let cut = |whole: &[u32]| {
            [0, 1].map(|k: usize| {
                let sizes = whole.iter().zip(&kept[k]).map(|(&size, &kept)| if kept { size } else { 1 });
                sizes.skip(missing[k]).collect()
            })
        };
        let answer = |[a, b]: &[Data; 2]| {
            let dims = broadcast(&[&a.dims, &b.dims]);
            let count = dims.iter().product::<u32>() as usize;
            let values = (0..count).map(|i| pick(a, &dims, i) + 3.0 * pick(b, &dims, i)).collect();
            (dims, values)
        };
        let sizes = |call: Call, rng: &mut Rng| cut(&call.sizes(&whole, rng));
        check("aten.add.Tensor", &[Entry::Int(3)], cut(&whole), sizes, answer, rng);
    });
}

#[test]
fn permutations() {
    each_seed(200, |rng| {
        let bound = shape(rng, 0);
        let mut order: Vec<usize> = (0..bound.len()).collect();
        (1..order.len()).for_each(|i| order.swap(i, rng.below(i as u64 + 1) as usize));
        let args = [Entry::Ints(order.iter().map(|&a| a as i64).collect())];
        let answer = |x: &Data| {
            moved(x, order.iter().map(|&a| x.dims[a]).collect(), |at| {
                let mut from = vec![0; at.len()];
                order.iter().zip(at).for_each(|(&axis, &c)| from[axis] = c);
                from
            })
        };
        single("aten.permute_copy.default", &args, (&bound, None), answer, rng);
    });
}

#[test]
fn slices() {
    each_seed(300, |rng| {
        let bound = shape(rng, 1);
        let (axis, dim) = axis(rng, bound.len());
        let [start, stop] = [0, 1].map(|_| rng.below(40) as i64 - 20);
        let step = 1 + rng.below(4) as i64;
        let args = [dim, Entry::Int(start), Entry::Int(stop), Entry::Int(step)];
        let answer = |x: &Data| {
            let size = i64::from(x.dims[axis]);
            let [first, last] = [start, stop].map(|n| (if n < 0 { n + size } else { n }).clamp(0, size));
            let mut dims = x.dims.clone();
            dims[axis] = ((last - first).max(0) as u32).div_ceil(step as u32);
            moved(x, dims, |at| {
                let mut from = at.to_vec();
                from[axis] = (first + at[axis] as i64 * step) as usize;
                from
            })
        };
        // An end that counts from behind may give more of less.
        single("aten.slice_copy.Tensor", &args, (&bound, Some(axis)), answer, rng);
    });
}

#[test]
fn reversals() {
    each_seed(400, |rng| {
        let bound = shape(rng, 0);
        let axes: Vec<usize> = (0..bound.len()).filter(|_| rng.below(2) == 0).collect();
        let args = [Entry::Ints(axes.iter().map(|&a| a as i64 - bound.len() as i64).collect())];
        let answer = |x: &Data| {
            moved(x, x.dims.clone(), |at| {
                let turned =
                    |(axis, &c): (usize, &usize)| if axes.contains(&axis) { x.dims[axis] as usize - 1 - c } else { c };
                at.iter().enumerate().map(turned).collect()
            })
        };
        single("aten.flip.default", &args, (&bound, None), answer, rng);
    });
}

#[test]
fn sums_over_any_dimensions() {
    each_seed(500, |rng| {
        let bound = shape(rng, 0);
        let axes: Vec<usize> = (0..bound.len()).filter(|_| rng.below(2) == 0).collect();
        let keep = rng.below(2) == 0;
        let args = [Entry::Ints(axes.iter().map(|&a| a as i64).collect()), Entry::Bool(keep), Entry::Null];
        // No dimension stands for all of them.
        let gone = |axis: usize| axes.is_empty() || axes.contains(&axis);
        let answer = |x: &Data| {
            let kept: Vec<u32> = x.dims.iter().enumerate().map(|(a, &n)| if gone(a) { 1 } else { n }).collect();
            let mut sums = vec![0.0; kept.iter().product::<u32>() as usize];
            for (i, v) in x.values.iter().enumerate() {
                let at: Vec<usize> =
                    coordinates(i, &x.dims).into_iter().enumerate().map(|(a, c)| if gone(a) { 0 } else { c }).collect();
                sums[flat(&at, &kept)] += v;
            }
            let dims = kept.iter().enumerate().filter(|&(a, _)| keep || !gone(a)).map(|(_, &n)| n).collect();
            (dims, sums)
        };
        single("aten.sum.dim_IntList", &args, (&bound, None), answer, rng);
    });
}

#[test]
fn softmax_over_any_dimension() {
    each_seed(600, |rng| {
        let bound = shape(rng, 1);
        let (axis, dim) = axis(rng, bound.len());
        let answer = |x: &Data| {
            let value = |i: usize| {
                let mut at = coordinates(i, &x.dims);
                let own = x.values[i];
                let line = (0..x.dims[axis] as usize).map(|c| {
                    at[axis] = c;
                    (x.values[flat(&at, &x.dims)] - own).exp()
                });
                1.0 / line.sum::<f64>()
            };
            (x.dims.clone(), (0..x.values.len()).map(value).collect())
        };
        single("aten._softmax.default", &[dim, Entry::Bool(false)], (&bound, None), answer, rng);
    });
}

#[test]
fn paddings() {
    each_seed(700, |rng| {
        let bound = shape(rng, 0);
        let padded = rng.below(bound.len().min(3) as u64 + 1) as usize;
        let room: Vec<[u32; 2]> = (0..bound.len())
            .map(|axis| if axis + padded < bound.len() { [0; 2] } else { [0, 1].map(|_| rng.below(3) as u32) })
            .collect();
        let amounts = room.iter().rev().take(padded).flatten().map(|&n| i64::from(n)).collect();
        let answer = |x: &Data| {
            let dims: Vec<u32> = x.dims.iter().zip(&room).map(|(n, [before, after])| n + before + after).collect();
            let mut values = vec![7.0; dims.iter().product::<u32>() as usize];
            for (i, &v) in x.values.iter().enumerate() {
                let at: Vec<usize> =
                    coordinates(i, &x.dims).iter().zip(&room).map(|(c, [before, _])| c + *before as usize).collect();
                values[flat(&at, &dims)] = v;
            }
            (dims, values)
        };
        single(
            "aten.constant_pad_nd.default",
            &[Entry::Ints(amounts), Entry::Double(7.0)],
            (&bound, None),
            answer,
            rng,
        );
    });
}

#[test]
fn repetitions() {
    each_seed(800, |rng| {
        let bound: Vec<u32> = shape(rng, 0).into_iter().map(|n| n.min(5)).collect();
        let new = rng.below(9 - bound.len() as u64) as usize;
        let counts: Vec<u32> = (0..bound.len() + new).map(|_| [1, 1, 1, 2, 3, 0][rng.below(6) as usize]).collect();
        let answer = |x: &Data| {
            let sizes: Vec<u32> = std::iter::repeat_n(1, new).chain(x.dims.iter().copied()).collect();
            let dims = sizes.iter().zip(&counts).map(|(n, count)| n * count).collect();
            moved(x, dims, |at| at.iter().zip(&sizes).skip(new).map(|(c, &n)| c % n as usize).collect())
        };
        let args = [Entry::Ints(counts.iter().map(|&n| i64::from(n)).collect())];
        single("aten.repeat.default", &args, (&bound, None), answer, rng);
    });
}

#[test]
fn places_of_the_greatest() {
    each_seed(900, |rng| {
        let mut bound = shape(rng, 1);
        let (axis, dim) = axis(rng, bound.len());
        bound[axis] = bound[axis].max(1);
        let keep = rng.below(2) == 0;
        let answer = |x: &Data| {
            let mut dims = x.dims.clone();
            dims[axis] = 1;
            let place = |i: usize| {
                let mut at = coordinates(i, &dims);
                let line = (0..x.dims[axis] as usize).map(|c| {
                    at[axis] = c;
                    x.values[flat(&at, &x.dims)]
                });
                line.enumerate().fold((0, f64::NEG_INFINITY), |most, now| if now.1 > most.1 { now } else { most }).0
                    as f64
            };
            let values: Vec<f64> = (0..dims.iter().product::<u32>() as usize).map(place).collect();
            if !keep {
                dims.remove(axis);
            }
            (dims, values)
        };
        let [first, calls] = [(); 2].map(|()| numbers(&bound, rng.next()));
        let model =
            Model::single("aten.argmax.default", &[&first], &[dim, Entry::Bool(keep)], DType::I64, &answer(&first).0);
        let mut fewer = Call::Random.sizes(&bound, rng);
        fewer[axis] = fewer[axis].max(1);
        let calls = [[calls], [numbers(&fewer, rng.next())], [first]];
        check_in_turn(&model, &calls, |[x], got| {
            let (dims, want) = answer(x);
            assert_close(&got[0], &dims, &want, (0.0, 0.0));
        });
    });
}

#[test]
fn joints_along_any_dimension() {
    each_seed(1000, |rng| {
        let whole = shape(rng, 1);
        let (axis, dim) = axis(rng, whole.len());
        let lengths = [0, 1, 2].map(|_| rng.below(6) as u32);
        let parts = |whole: &[u32], lengths: [u32; 3]| {
            lengths.map(|length| {
                let mut dims = whole.to_vec();
                dims[axis] = length;
                dims
            })
        };
        let answer = |parts: &[Data; 3]| {
            let mut dims = parts[0].dims.clone();
            dims[axis] = parts.iter().map(|x| x.dims[axis]).sum();
            let value = |i: usize| {
                let mut at = coordinates(i, &dims);
                let part = parts.iter().find(|x| {
                    let inside = at[axis] < x.dims[axis] as usize;
                    at[axis] -= if inside { 0 } else { x.dims[axis] as usize };
                    inside
                });
                part.map(|x| x.values[flat(&at, &x.dims)]).unwrap()
            };
            let values: Vec<f64> = (0..dims.iter().product::<u32>() as usize).map(value).collect();
            (dims, values)
        };
        let mut model = Model::new();
        let bound = parts(&whole, lengths).map(|dims| numbers(&dims, 1));
        let inputs = bound.each_ref().map(|x| model.input(x.dtype, &x.dims));
        let (list, dim, out) = (model.list(&inputs), model.add(dim), model.tensor(DType::F32, &answer(&bound).0));
        model.op("aten.cat.default", &[list, dim, out]);
        model.output(out);
        let calls = [(); 3].map(|()| (Call::Random.sizes(&whole, rng), Call::Random.sizes(&lengths, rng)));
        let fewer = calls.map(|(sizes, lengths)| parts(&sizes, [lengths[0], lengths[1], lengths[2]]));
        let [a, b, c] = fewer.map(|parts| parts.map(|dims| numbers(&dims, rng.next())));
        check_in_turn(&model, &[bound.clone(), a, b, c, bound.clone()], |inputs, got| {
            let (dims, want) = answer(inputs);
            assert_close(&got[0], &dims, &want, (0.0, 0.0));
        });
    });
}
