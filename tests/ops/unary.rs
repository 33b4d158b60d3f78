use executorch_webgpu::graph::DType;

use crate::common::{Data, Model, assert_close, tolerance};

fn check(op: &str, range: (f64, f64), f: fn(f64) -> f64) {
    for dtype in [DType::F32, DType::F16] {
        for dims in [&[][..], &[1], &[3], &[37, 41], &[2, 3, 5, 7], &[65, 1]] {
            let x = Data::random(dtype, dims, range, 7);
            let want: Vec<f64> = x.values.iter().map(|&x| f(x)).collect();
            Model::single(op, &[&x], &[], dtype, dims)
                .check(&[&x], |out| assert_close(&out[0], dims, &want, tolerance(dtype, 1)));
        }
    }
}

#[test]
fn sigmoid() {
    check("aten.sigmoid.default", (-12.0, 12.0), |x| 1.0 / (1.0 + (-x).exp()));
}

#[test]
fn relu() {
    check("aten.relu.default", (-3.0, 3.0), |x| x.max(0.0));
}
