//! Calls that do not fit the program: refused with the numbers, nothing changes, and the next call works.

use executorch_webgpu::error::Error;
use executorch_webgpu::exec::{HostTensor, HostValue};
use executorch_webgpu::graph::DType::{F32, I64};
use executorch_webgpu::graph::Dims;

use crate::common::Data;
use crate::common::model::Running;
use crate::host::{Results, tensor};
use crate::seeds;

/// A decoder with a prompt of three behind it, and what its next step gives.
struct Decoder {
    running: Running,
    next: Vec<Data>,
}

impl Decoder {
    fn new() -> Decoder {
        let mut running = seeds::decoder().load().unwrap();
        step(&mut running, 3, 0).unwrap();
        let next = step(&mut running, 1, 3).unwrap();
        Decoder { running, next }
    }

    /// The error of a call, which must be about shapes and contain all of `words`. The next step gives what it gave before.
    #[track_caller]
    fn refuses(&mut self, inputs: &[HostValue<'_>], words: &[&str]) {
        let mut results = Results::new(&[F32, I64]);
        let error = self.running.program.execute(inputs, &mut results).unwrap_err();
        assert!(matches!(error, Error::Shape { .. }), "{error:?}");
        let text = error.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text:?} lacks some of {words:?}");
        assert_eq!(step(&mut self.running, 1, 3).unwrap(), self.next, "after {text:?}");
    }
}

fn step(running: &mut Running, seq: u32, pos: i64) -> executorch_webgpu::error::Result<Vec<Data>> {
    let inputs = seeds::decoder_inputs(seq, pos);
    running.run(&inputs.iter().collect::<Vec<_>>())
}

fn rows(dims: &[u32]) -> Data {
    Data::random(F32, dims, (-1.0, 1.0), 8)
}

#[test]
fn wrong_counts() {
    let mut decoder = Decoder::new();
    let (x, pos) = (rows(&[1, 1, 2, 8]), Data::i64(&[1], &[3]));
    let (x_bytes, pos_bytes) = (x.bytes(), pos.bytes());
    let values = [tensor(&x, &x_bytes), tensor(&pos, &pos_bytes), tensor(&pos, &pos_bytes)];
    decoder.refuses(&[], &["0 inputs", "takes 2"]);
    decoder.refuses(&values[..1], &["1 inputs", "takes 2"]);
    decoder.refuses(&values, &["3 inputs", "takes 2"]);
}

#[test]
fn wrong_kinds() {
    let mut decoder = Decoder::new();
    let pos = Data::i64(&[1], &[3]);
    let bytes = pos.bytes();
    for value in [HostValue::None, HostValue::Int(3), HostValue::Double(3.0)] {
        decoder.refuses(&[value, tensor(&pos, &bytes)], &["input 0", "no tensor", "float32 [1, 4, 2, 8]"]);
    }
}

#[test]
fn wrong_shapes() {
    let mut decoder = Decoder::new();
    let pos = Data::i64(&[1], &[3]);
    let bytes = pos.bytes();
    for dims in [&[1, 5, 2, 8][..], &[2, 1, 2, 8], &[1, 1, 2], &[1, 1, 1, 2, 8], &[], &[1, 1, 2, 9]] {
        let x = rows(dims);
        let found = Dims::new(dims).unwrap().to_string();
        decoder.refuses(&[tensor(&x, &x.bytes()), tensor(&pos, &bytes)], &["input 0", &found, "[1, 4, 2, 8]"]);
    }
    for dims in [&[1, 1, 1, 8][..], &[1, 1, 2, 4]] {
        let x = rows(dims);
        decoder.refuses(&[tensor(&x, &x.bytes()), tensor(&pos, &bytes)], &[]);
    }
}

#[test]
fn missing_bytes() {
    let mut decoder = Decoder::new();
    let (x, pos) = (rows(&[1, 1, 2, 8]), Data::i64(&[1], &[3]));
    let (x_bytes, pos_bytes) = (x.bytes(), pos.bytes());
    for count in [0, 4, 63] {
        let short = HostTensor { dtype: F32, dims: x.shape(), bytes: &x_bytes[..count] };
        let words = ["input 0", &format!("{count} bytes"), "64"];
        decoder.refuses(&[HostValue::Tensor(short), tensor(&pos, &pos_bytes)], &words);
    }
    let short = HostTensor { dtype: I64, dims: pos.shape(), bytes: &pos_bytes[..4] };
    decoder.refuses(&[tensor(&x, &x_bytes), HostValue::Tensor(short)], &["input 1", "4 bytes", "8"]);
}

#[test]
fn positions_beyond_the_cache() {
    let mut decoder = Decoder::new();
    for (seq, pos, word) in [
        (1, 16, "16 with length 1 is outside 0..16"),
        (4, 13, "13 with length 4 is outside 0..16"),
        (2, 15, "15 with length 2 is outside 0..16"),
        (1, -1, "-1 with length 1 is outside 0..16"),
        (1, i64::from(i32::MIN), "-2147483648 with length 1"),
        (1, i64::from(i32::MAX), "2147483647 with length 1 is outside 0..16"),
        (1, 1 << 40, "1099511627776 does not fit 32 bits"),
    ] {
        let inputs = seeds::decoder_inputs(seq, pos);
        let bytes = inputs[0].bytes();
        let number = pos.to_le_bytes();
        decoder.refuses(&[tensor(&inputs[0], &bytes), tensor(&inputs[1], &number)], &[word]);
    }
    step(&mut decoder.running, 4, 12).unwrap();
}

#[test]
fn a_call_of_no_rows_is_empty() {
    let mut running = seeds::decoder().load().unwrap();
    step(&mut running, 3, 0).unwrap();
    let next = step(&mut running, 1, 3).unwrap();
    let nothing = step(&mut running, 0, 3).unwrap();
    assert_eq!((&nothing[0].dims[..], nothing[0].values.len()), (&[1, 0, 2, 12][..], 0));
    assert_eq!(nothing[1].values, [3.0]);
    assert_eq!(step(&mut running, 1, 3).unwrap(), next);
}

#[test]
fn a_host_that_refuses_a_result_is_an_error_and_no_more() {
    struct Refusing;
    impl executorch_webgpu::exec::Outputs for Refusing {
        fn dtype(&self, _: usize) -> Option<executorch_webgpu::graph::DType> {
            Some(F32)
        }
        fn tensor(&mut self, _: usize, dims: &Dims) -> executorch_webgpu::error::Result<&mut [u8]> {
            Err(Error::Shape { op: "output".into(), why: format!("no room for {dims}") })
        }
        fn scalar(&mut self, _: usize, _: i64) -> executorch_webgpu::error::Result<()> {
            Ok(())
        }
    }
    let mut decoder = Decoder::new();
    let inputs = seeds::decoder_inputs(1, 3);
    let (x, pos) = (inputs[0].bytes(), inputs[1].bytes());
    for _ in 0..3 {
        let values = [tensor(&inputs[0], &x), tensor(&inputs[1], &pos)];
        let error = decoder.running.program.execute(&values, &mut Refusing).unwrap_err();
        assert!(error.to_string().contains("no room for [1, 1, 2, 12]"), "{error}");
        assert_eq!(step(&mut decoder.running, 1, 3).unwrap(), decoder.next);
    }
}
