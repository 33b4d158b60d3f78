use executorch_webgpu::graph::DType;

use crate::cases::ALL;
use crate::common::{Data, Model};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] = &[sizes_of_every_type, numbers_of_every_integer_type];

#[test]
fn sizes_of_every_type() {
    for dtype in ALL {
        let x = Data::random(dtype, &[4, 5], (0.0, 1.0), 1);
        let mut m = Model::new();
        let (input, last, size) = (m.input(dtype, &x.dims), m.int(-1), m.symint());
        m.op("sym_size.int", &[input, last, size]);
        m.output(size);
        m.check(&[&x], |got| assert_eq!(got[0].values, [5.0]));
    }
}

#[test]
fn numbers_of_every_integer_type() {
    for dtype in ALL.into_iter().filter(|dtype| !dtype.is_float()) {
        let x = Data::new(dtype, &[3], vec![0.0, 1.0, 0.0]);
        let mut m = Model::new();
        let (input, zero, one, number) = (m.input(dtype, &[3]), m.int(0), m.int(1), m.symint());
        m.op("et_vk.select_as_symint.default", &[input, zero, one, number]);
        m.output(number);
        m.check(&[&x], |got| assert_eq!(got[0].values, [1.0]));
    }
}

#[test]
fn a_float_is_no_number() {
    let mut m = Model::new();
    let (input, zero, number) = (m.input(DType::F32, &[1]), m.int(0), m.symint());
    m.op("et_vk.select_as_symint.default", &[input, zero, zero, number]);
    m.output(number);
    let text = m.load().err().unwrap().to_string();
    assert!(text.contains("et_vk.select_as_symint.default") && text.contains("float32"), "{text}");
}
