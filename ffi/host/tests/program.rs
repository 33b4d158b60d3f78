//! The bridge runs a real program through ExecuTorch and hands its errors back.

mod common;

use std::path::PathBuf;

use common::{load, logits, plugin};
use etwgpu_host::{Program, ProgramFiles, Result, RuntimeOption, ScalarType, Tensor, Value, ValueInfo};

const INVALID_ARGUMENT: u32 = 0x12;
const ACCESS_FAILED: u32 = 0x22;

fn tensor(scalar_type: ScalarType, sizes: &[i32]) -> ValueInfo {
    ValueInfo::Tensor { scalar_type, sizes: sizes.to_vec() }
}

#[test]
fn a_method_describes_itself() -> Result<()> {
    let mut program = load(&[], false)?;
    assert!(program.method_names()?.contains(&"forward".to_owned()));
    assert_eq!(program.inputs("forward")?, [tensor(ScalarType::Long, &[1, 127]), tensor(ScalarType::Long, &[1])]);
    assert_eq!(program.outputs("forward")?, [tensor(ScalarType::Float, &[1, 512])]);
    assert_eq!(program.execute("get_vocab_size", Vec::new())?, [Value::Int(512)]);
    Ok(())
}

#[test]
fn a_program_runs_and_repeats() -> Result<()> {
    let mut program = load(&[], false)?;
    let first = logits(&mut program, &[3, 1, 4, 1, 5], 0)?;
    assert_eq!(first.sizes(), [1, 512]);
    assert!(first.elements::<f32>()?.iter().all(|logit| logit.is_finite()));
    assert_eq!(first, logits(&mut program, &[3, 1, 4, 1, 5], 0)?);
    Ok(())
}

#[test]
fn a_refused_call_leaves_the_program_usable() -> Result<()> {
    let mut program = load(&[], false)?;
    let before = logits(&mut program, &[3, 1, 4], 0)?;
    assert!(logits(&mut program, &[3; 128], 0).is_err());
    let refused = logits(&mut program, &[3], 1 << 20);
    assert_eq!(refused.err().and_then(|error| error.code()), Some(INVALID_ARGUMENT));
    assert!(program.forward(vec![Tensor::new(&[1, 1], &[3i64])?.into()]).is_err());
    assert!(program.execute("no_such_method", Vec::new()).is_err());
    assert_eq!(before, logits(&mut program, &[3, 1, 4], 0)?);
    Ok(())
}

#[test]
fn a_missing_file_is_an_error_with_a_name() -> Result<()> {
    plugin()?;
    let files = ProgramFiles { program: PathBuf::from("no-such-file.pte"), ..ProgramFiles::default() };
    let error = Program::load(&files, &[]).err();
    assert_eq!(error.as_ref().and_then(etwgpu_host::Error::code), Some(ACCESS_FAILED));
    assert!(error.is_some_and(|error| error.to_string().contains("Error::AccessFailed")));
    Ok(())
}

#[test]
fn a_runtime_option_of_a_wrong_type_is_named() -> Result<()> {
    let option: RuntimeOption = "sdpa_query_tile=true".parse()?;
    let error = load(&[option], false).err();
    assert_eq!(error.and_then(|error| error.code()), Some(INVALID_ARGUMENT));
    assert!(plugin()?.last_error()?.contains("sdpa_query_tile"));
    Ok(())
}

#[test]
fn a_trace_is_recorded_on_request() -> Result<()> {
    let mut plain = load(&[], false)?;
    let mut traced = load(&[], true)?;
    assert_eq!(logits(&mut plain, &[3, 1], 0)?, logits(&mut traced, &[3, 1], 0)?);
    assert!(plain.take_trace()?.is_empty());
    assert!(!traced.take_trace()?.is_empty());
    Ok(())
}

#[test]
fn the_delegate_counts_its_memory() -> Result<()> {
    let _program = load(&[], false)?;
    let memory = plugin()?.memory()?;
    assert!(memory.weights > 0);
    assert!(memory.peak >= memory.weights + memory.caches + memory.activations);
    Ok(())
}
