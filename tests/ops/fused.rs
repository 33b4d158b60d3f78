//! What passes make of groups of operators, against an f64 loop for the whole group.

use executorch_webgpu::graph::DType;
use executorch_webgpu::options::Options;

use crate::cases::FLOATS;
use crate::common::model::Running;
use crate::common::writer::Id;
use crate::common::{Data, Model, assert_close, q4, tolerance};
use crate::linear::product;
use crate::q4_layer::{PROFILES, tolerance_on, ways};

/// Fails unless the loaded program has a node of this operator.
#[track_caller]
fn assert_fused(running: &Running, op: &str) {
    let nodes = &running.program.plan().graph.nodes;
    assert!(nodes.iter().any(|node| node.op == op), "{}", running.program.plan().graph);
}

/// Adds a 4-bit layer; returns its result.
fn layer(m: &mut Model, x: Id, w: &q4::Q4, bias: Option<&Data>, out: &[u32]) -> Id {
    let (packed, scales, group) = (m.constant(&w.packed), m.constant(&w.scales), m.int(i64::from(w.group)));
    let bias = bias.map(|bias| m.constant(bias)).unwrap_or_else(|| m.null());
    let y = m.tensor(DType::F32, out);
    m.op("et_vk.linear_q4gsw.default", &[x, packed, scales, group, bias, y]);
    y
}

fn rows(x: &Data, m: u32) -> Data {
    let width = x.dims[1];
    Data::f32(&[m, width], x.values[..(m * width) as usize].to_vec())
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
                assert_fused(&running, "fused.linear_add");
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
                assert_fused(&m.load_with(Options::default(), profile).unwrap(), "fused.silu_mul");
            }
            m.check(&[&g, &u], |got| assert_close(&got[0], dims, &want, tolerance(dtype, 1)));
        }
    }
}
