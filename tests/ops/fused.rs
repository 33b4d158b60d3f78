//! What passes make of groups of operators, against an f64 loop for the whole group.

use executorch_webgpu::gpu::Profile;
use executorch_webgpu::graph::DType;
use executorch_webgpu::ops::SILU_MUL;
use executorch_webgpu::ops::attention::{Cut, ROTARY};
use executorch_webgpu::ops::linear::{LINEAR_ADD, NORM_GATE, NORM_LAYERS};
use executorch_webgpu::options::Options;

use crate::attention::{F16_TOLERANCE, F32_TOLERANCE, Reference, Shape, halves, inputs, shape};
use crate::cases::FLOATS;
use crate::common::model::Running;
use crate::common::writer::{Entry, Id};
use crate::common::{Data, Model, assert_close, q4, tolerance};
use crate::linear::product;
use crate::q4_layer::{PROFILES, tolerance_on, ways};

/// Fails unless the loaded program has a node of this operator.
#[track_caller]
fn assert_fused(running: &Running, op: &str) {
    let nodes = &running.program.plan().graph.nodes;
    assert!(nodes.iter().any(|node| node.op == op), "{}", running.program.plan().graph);
}

fn dtype(m: &Model, id: Id) -> DType {
    match m.payload.values[id] {
        Entry::Tensor { dtype, .. } => dtype,
        _ => panic!("value {id} is no tensor"),
    }
}

/// Adds a 4-bit layer; returns its result.
fn layer(m: &mut Model, x: Id, w: &q4::Q4, bias: Option<&Data>, out: &[u32]) -> Id {
    let (packed, scales, group) = (m.constant(&w.packed), m.constant(&w.scales), m.int(i64::from(w.group)));
    let bias = bias.map(|bias| m.constant(bias)).unwrap_or_else(|| m.null());
    let y = m.tensor(dtype(m, x), out);
    m.op("et_vk.linear_q4gsw.default", &[x, packed, scales, group, bias, y]);
    y
}

fn rows(x: &Data, m: u32) -> Data {
    let width = x.dims[1];
    Data::new(x.dtype, &[m, width], x.values[..(m * width) as usize].to_vec())
}

#[test]
fn a_layer_and_its_residual() {
    for (k, n, group) in [(64, 48, 32), (40, 33, 8), (37, 10, 37)] {
        let w = q4::random(n, k, group, 1);
        let (x, r) =
            (Data::random(DType::F32, &[70, k], (-1.0, 1.0), 2), Data::random(DType::F32, &[70, n], (-1.0, 1.0), 3));
        let mut m = Model::new();
        let (input, addend) = (m.input(DType::F32, &[70, k]), m.input(DType::F32, &[70, n]));
        let y = layer(&mut m, input, &w, None, &[70, n]);
        let (one, z) = (m.int(1), m.tensor(DType::F32, &[70, n]));
        m.op("aten.add.Tensor", &[addend, y, one, z]);
        m.output(z);
        for profile in PROFILES {
            for force_gemm in ways(profile) {
                let options = Options { force_gemm, ..Options::default() };
                let mut running = m.load_with(options, profile).unwrap();
                assert_fused(&running, LINEAR_ADD);
                for rows_now in [70, 17, 9, 4, 1] {
                    let (x, r) = (rows(&x, rows_now), rows(&r, rows_now));
                    let mut want = product(&x.values, &w.dense, (rows_now, n, k));
                    want.iter_mut().zip(&r.values).for_each(|(y, r)| *y += r);
                    running.program.fill_activations(0xFF).unwrap();
                    let got = running.run(&[&x, &r]).unwrap();
                    assert_close(&got[0], &[rows_now, n], &want, tolerance_on(&running, k));
                }
            }
        }
    }
}

#[test]
fn an_addend_of_another_shape_is_refused() {
    let mut m = Model::new();
    let (x, r) = (m.input(DType::F32, &[4, 16]), m.input(DType::F32, &[4, 8]));
    let y = layer(&mut m, x, &q4::random(8, 16, 16, 1), None, &[4, 8]);
    let (one, z) = (m.int(1), m.tensor(DType::F32, &[4, 8]));
    m.op("aten.add.Tensor", &[r, y, one, z]);
    m.output(z);
    let (x, r) = (Data::f32(&[4, 16], vec![0.0; 64]), Data::f32(&[1, 8], vec![0.0; 8]));
    let text = m.load().unwrap().run(&[&x, &r]).unwrap_err().to_string();
    assert!(text.contains("[1, 8]") && text.contains("[4, 8]"), "{text}");
}

#[test]
fn a_gate() {
    for dtype in FLOATS {
        for dims in [&[37, 41][..], &[2, 3, 8], &[1]] {
            let (g, u) = (Data::random(dtype, dims, (-8.0, 8.0), 1), Data::random(dtype, dims, (-2.0, 2.0), 2));
            let mut m = Model::new();
            let (gate, up) = (m.input(dtype, dims), m.input(dtype, dims));
            let [s, t, out] = [(); 3].map(|()| m.tensor(dtype, dims));
            m.op("aten.sigmoid.default", &[gate, s]);
            m.op("aten.mul.Tensor", &[gate, s, t]);
            m.op("aten.mul.Tensor", &[up, t, out]);
            m.output(out);
            let silu = |x: f64| x / (1.0 + (-x).exp());
            let want: Vec<f64> = g.values.iter().zip(&u.values).map(|(&g, &u)| silu(g) * u).collect();
            for profile in PROFILES {
                assert_fused(&m.load_with(Options::default(), profile).unwrap(), SILU_MUL);
            }
            m.check(&[&g, &u], |got| assert_close(&got[0], dims, &want, tolerance(dtype, 1)));
        }
    }
}

const EPS: f64 = 1e-5;

/// Adds a norm of rows of `k`; returns its result.
fn norm(m: &mut Model, x: Id, dims: &[u32], weight: Option<&Data>) -> Id {
    let weight = weight.map(|weight| m.constant(weight)).unwrap_or_else(|| m.null());
    let (eps, y) = (m.double(EPS), m.tensor(dtype(m, x), dims));
    m.op("et_vk.rms_norm.default", &[x, weight, eps, y]);
    y
}

fn normalised(x: &Data, weight: Option<&Data>) -> Vec<f64> {
    let k = x.dims[1] as usize;
    let row = |row: &[f64]| -> Vec<f64> {
        let scale = 1.0 / (row.iter().map(|v| v * v).sum::<f64>() / k as f64 + EPS).sqrt();
        row.iter().enumerate().map(|(i, v)| v * scale * weight.map_or(1.0, |weight| weight.values[i])).collect()
    };
    x.values.chunks(k).flat_map(row).collect()
}

/// A norm and layers of these widths, all with a bias or none; up to 70 rows.
struct Normed {
    model: Model,
    x: Data,
    weight: Option<Data>,
    layers: Vec<(q4::Q4, Option<Data>, u32)>,
}

impl Normed {
    fn new(dtype: DType, (k, group): (u32, u32), widths: &[u32], is_plain: bool) -> Normed {
        // Rows beside whose squares eps counts, or does not.
        let range = if is_plain { 0.003 } else { 3.0 };
        let x = Data::random(dtype, &[70, k], (-range, range), 1);
        let weight = (!is_plain).then(|| Data::random(dtype, &[k], (0.5, 1.5), 2));
        let layer_of = |(seed, &n): (usize, &u32)| {
            let seed = seed as u64 + 10;
            let bias = (!is_plain).then(|| Data::random(dtype, &[n], (-1.0, 1.0), seed));
            (q4::random(n, k, group, seed), bias, n)
        };
        let layers: Vec<_> = widths.iter().enumerate().map(layer_of).collect();
        let mut m = Model::new();
        let input = m.input(dtype, &[70, k]);
        let h = norm(&mut m, input, &[70, k], weight.as_ref());
        for (w, bias, n) in &layers {
            let y = layer(&mut m, h, w, bias.as_ref(), &[70, *n]);
            m.output(y);
        }
        Normed { model: m, x, weight, layers }
    }

    /// What the layers give.
    fn want(&self) -> Vec<Vec<f64>> {
        let (m, k) = (self.x.dims[0], self.x.dims[1]);
        let h = normalised(&self.x, self.weight.as_ref());
        let layer = |(w, bias, n): &(q4::Q4, Option<Data>, u32)| {
            let mut y = product(&h, &w.dense, (m, *n, k));
            y.iter_mut().enumerate().for_each(|(i, y)| *y += bias.as_ref().map_or(0.0, |b| b.values[i % *n as usize]));
            y
        };
        self.layers.iter().map(layer).collect()
    }
}

/// Runs a model at several numbers of rows in every way, and compares all its results.
#[track_caller]
fn check_rows(model: &Model, op: &str, x: &Data, widths: &[u32], want: &[Vec<f64>]) {
    for profile in PROFILES {
        for force_gemm in ways(profile) {
            let options = Options { force_gemm, ..Options::default() };
            let mut running = model.load_with(options, profile).unwrap();
            assert_fused(&running, op);
            for count in [70, 9, 7, 4, 2, 1] {
                let x = rows(x, count);
                running.program.fill_activations(0xFF).unwrap();
                let got = running.run(&[&x]).unwrap();
                for ((got, want), n) in got.iter().zip(want).zip(widths) {
                    let (abs, rel) = match x.dtype {
                        DType::F16 => tolerance(DType::F16, x.dims[1] as usize),
                        _ => tolerance_on(&running, x.dims[1]),
                    };
                    // A gate multiplies two layers, and with them their errors.
                    assert_close(got, &[count, *n], &want[..(count * n) as usize], (4.0 * abs, 3.0 * rel));
                }
            }
        }
    }
}

#[test]
fn a_norm_and_its_layers() {
    for (k, group, widths, is_plain) in [
        (64, 32, &[64, 64, 128][..], false),
        (128, 64, &[192, 64, 64], true),
        (40, 8, &[33], false),
        (37, 37, &[10], false),
        (2048, 32, &[64, 64], false),
        (256, 32, &[64, 128, 192], true),
    ] {
        let case = Normed::new(DType::F32, (k, group), widths, is_plain);
        check_rows(&case.model, NORM_LAYERS, &case.x, widths, &case.want());
    }
}

#[test]
fn a_norm_and_its_gate() {
    for (dtype, k, group, n, is_plain) in [
        (DType::F32, 64, 32, 192, false),
        (DType::F32, 128, 64, 64, true),
        (DType::F32, 2048, 32, 64, false),
        (DType::F32, 96, 32, 448, true),
        (DType::F16, 64, 32, 128, false),
    ] {
        let case = Normed::new(dtype, (k, group), &[n, n], is_plain);
        for up_first in [false, true] {
            let mut m = case.model.clone();
            let mut layers = std::mem::take(&mut m.payload.outputs);
            if up_first {
                layers.reverse();
            }
            let [s, t, out] = [(); 3].map(|()| m.tensor(dtype, &[70, n]));
            m.op("aten.sigmoid.default", &[layers[0], s]);
            m.op("aten.mul.Tensor", &[s, layers[0], t]);
            m.op("aten.mul.Tensor", &[t, layers[1], out]);
            let mut gate = m.without_outputs();
            gate.output(out);
            let mut layers = case.want();
            if up_first {
                layers.reverse();
            }
            let silu = |x: f64| x / (1.0 + (-x).exp());
            let want = layers[0].iter().zip(&layers[1]).map(|(&g, &u)| silu(g) * u).collect();
            check_rows(&gate, NORM_GATE, &case.x, &[n], &[want]);
        }
    }
}

#[test]
fn many_layers_are_normed_in_one_step() {
    let case = Normed::new(DType::F32, (64, 32), &[64, 64, 64], true);
    let running = case.model.load().unwrap();
    let plan = running.program.plan();
    let names: Vec<&str> = plan.probes[0].lowered[0].steps.iter().map(|step| step.kernel.body.name()).collect();
    assert_eq!(names.iter().filter(|name| **name == "norm").count(), 1, "{names:?}");
    let halves = names.iter().filter(|name| **name == "half_rows").count();
    assert!(halves <= 1, "{names:?}");
}

/// How a test rotates: pairs, whose tables a caller gives, or so many leading dimensions of a head as halves.
#[derive(Clone, Copy, Debug)]
enum Style {
    Pairs,
    Halves(u32),
}

/// Angles by position and column: columns of pairs stand for two dimensions.
fn table(rows: u32, columns: u32, style: Style, part: fn(f64) -> f64) -> Data {
    let angle = |row: u32, column: u32| f64::from(row) * 0.9f64.powi(column as i32);
    let column = |c: u32| if matches!(style, Style::Halves(_)) { c % (columns / 2) } else { c };
    let values = (0..rows * columns).map(|i| part(angle(i / columns, column(i % columns)))).collect();
    Data::f32(&[rows, columns], values)
}

/// A row of heads rotated at position `pos + row`, from the definition.
fn rotated(x: &Data, pos: usize, style: Style) -> Data {
    let (heads, d) = (x.dims[2] as usize, x.dims[3] as usize);
    let mut out = x.values.clone();
    for (head, values) in x.values.chunks(d).enumerate() {
        let position = (pos + head / heads) as f64;
        let count = if let Style::Halves(rotary) = style { rotary as usize / 2 } else { d / 2 };
        for j in 0..count {
            let (a, b) = if let Style::Pairs = style { (2 * j, 2 * j + 1) } else { (j, j + count) };
            let (sin, cos) = (position * 0.9f64.powi(j as i32)).sin_cos();
            out[head * d + a] = values[a] * cos - values[b] * sin;
            out[head * d + b] = values[b] * cos + values[a] * sin;
        }
    }
    Data::f32(&x.dims, out)
}

/// q, k, v, the position and, for pairs, the rows of the tables in; attention out.
fn rotary_model(s: Shape, style: Style) -> Model {
    let mut m = Model::new();
    let [q, k, v] = [s.heads_q, s.heads_kv, s.heads_kv].map(|heads| m.input(DType::F32, &[1, s.seq, heads, s.d]));
    let position = m.input(DType::I64, &[1]);
    let (zero, pos) = (m.int(0), m.symint());
    m.op("et_vk.select_as_symint.default", &[position, zero, zero, pos]);
    let turned = [s.heads_q, s.heads_kv].map(|heads| m.tensor(DType::F32, &[1, s.seq, heads, s.d]));
    let outputs = m.list(&turned);
    match style {
        Style::Pairs => {
            let tables = [(); 2].map(|()| m.input(DType::F32, &[s.seq, s.d / 2]));
            m.op("et_vk.apply_rotary_emb.default", &[q, k, tables[0], tables[1], outputs]);
        }
        Style::Halves(rotary) => {
            let tables = [f64::cos, f64::sin].map(|part| m.constant(&table(s.capacity, rotary, style, part)));
            m.op("et_vk.apply_rotary_emb_hf.default", &[q, k, tables[0], tables[1], pos, outputs]);
        }
    }
    let cache = [1, s.capacity, s.heads_kv, s.d];
    let unused = Data::f32(&cache, vec![f64::NAN; cache.iter().product::<u32>() as usize]);
    let (k_cache, v_cache) = (m.constant(&unused), m.constant(&unused));
    let out = m.tensor(DType::F32, &[1, s.seq, s.heads_q, s.d]);
    let (one, none, causal) = (m.int(1), m.null(), m.boolean(true));
    let [q, k] = turned;
    m.op("sdpa_with_kv_cache.default", &[q, k, v, k_cache, v_cache, pos, one, none, none, causal, none, out]);
    m.output(out);
    m
}

#[test]
fn a_rotary_embedding_and_its_attention() {
    for (s, style) in [
        (shape(4, 2, 8, 17, 96), Style::Pairs),
        (shape(3, 3, 20, 17, 96), Style::Pairs),
        (shape(6, 1, 64, 17, 700), Style::Halves(64)),
        (shape(2, 2, 12, 17, 96), Style::Halves(8)),
    ] {
        for enable_f16_kv_cache in [false, true] {
            let forced = [1, 3].map(|splits| (Profile::Full, Some(Cut::Few { splits })));
            for (profile, force_attention) in PROFILES.map(|profile| (profile, None)).into_iter().chain(forced) {
                let options = Options { enable_f16_kv_cache, force_attention, ..Options::default() };
                let mut running = rotary_model(s, style).load_with(options, profile).unwrap();
                assert_fused(&running, ROTARY[usize::from(matches!(style, Style::Halves(_)))]);
                let mut reference = Reference::new(s, None);
                for (index, (seq, pos)) in [(17, 0), (1, 17), (3, 18), (1, 21)].into_iter().enumerate() {
                    running.program.fill_activations(0xFF).unwrap();
                    let [q, k, v] = inputs(s, seq, 1.0, index as u64 + 1);
                    let want = reference.step(&rotated(&q, pos, style), &rotated(&k, pos, style), &v, pos);
                    let position = Data::i64(&[1], &[pos as i64]);
                    let rows = [f64::cos, f64::sin].map(|part| {
                        let whole = table(s.capacity, s.d / 2, style, part);
                        let width = s.d as usize / 2;
                        Data::f32(&[seq, s.d / 2], whole.values[pos * width..][..seq as usize * width].to_vec())
                    });
                    let mut given = vec![&q, &k, &v, &position];
                    given.extend(rows.iter().filter(|_| matches!(style, Style::Pairs)));
                    let got = running.run(&given).unwrap();
                    let tolerance = if enable_f16_kv_cache || halves(&running) { F16_TOLERANCE } else { F32_TOLERANCE };
                    assert_close(&got[0], &[1, seq, s.heads_q, s.d], &want, tolerance);
                }
            }
        }
    }
}

#[test]
fn a_position_outside_the_cache_of_rotated_keys_changes_nothing() {
    let s = shape(2, 1, 8, 4, 16);
    let mut running = rotary_model(s, Style::Halves(8)).load().unwrap();
    let [q, k, v] = inputs(s, 4, 1.0, 1);
    let mut run = |pos: i64| running.run(&[&q, &k, &v, &Data::i64(&[1], &[pos])]);
    let first = run(0).unwrap();
    let text = run(13).unwrap_err().to_string();
    assert!(text.contains("13 with length 4 is outside 0..16"), "{text}");
    assert_eq!(run(0).unwrap(), first);
}
