use std::path::{Path, PathBuf};
use std::time::Duration;

use cxx::UniquePtr;

use crate::bridge::ffi;
use crate::error::{Error, Result, check, exception_error};
use crate::option::RuntimeOption;
use crate::scalar::ScalarType;
use crate::value::Value;

/// What an input or output of a method is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueInfo {
    /// A tensor; a dynamic size is given as its upper bound.
    Tensor {
        /// Element type.
        scalar_type: ScalarType,
        /// Size of each dimension.
        sizes: Vec<i32>,
    },
    /// A number, a flag or none.
    Scalar,
    /// A list or a string.
    Other,
}

/// Where a program comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramFiles {
    /// The `.pte`.
    pub program: PathBuf,
    /// `.ptd` files with its external data.
    pub data: Vec<PathBuf>,
    /// Records an ETDump of everything that is executed.
    pub traced: bool,
}

/// A step of a call that a delegate timed on its device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The delegate's name for it.
    pub name: String,
    /// How long it took.
    pub time: Duration,
}

/// A loaded ExecuTorch program.
pub struct Program {
    host: UniquePtr<ffi::Host>,
    last_call: Duration,
}

impl Program {
    /// Reads the program and keeps `options` for the delegate; methods are loaded by [`Program::load_method`] or by their
    /// first execution.
    pub fn load(files: &ProgramFiles, options: &[RuntimeOption]) -> Result<Self> {
        let doing = format!("load {}", files.program.display());
        let data = files.data.iter().map(|path| text(path)).collect::<Result<Vec<_>>>()?;
        let host = ffi::open(&text(&files.program)?, &data, files.traced)
            .map_err(|exception| exception_error(&exception, &doing))?;
        let mut program = Self { host, last_call: Duration::ZERO };
        let options: Vec<_> = options.iter().map(RuntimeOption::to_raw).collect();
        check(program.host.pin_mut().load(&options), &doing)?;
        Ok(program)
    }

    /// Loads a method: the delegate uploads its weights and builds its kernels.
    pub fn load_method(&mut self, method: &str) -> Result<()> {
        check(self.host.pin_mut().load_method(method), &format!("load method {method}"))
    }

    /// Names of all methods, sorted.
    pub fn method_names(&mut self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        check(self.host.pin_mut().method_names(&mut names), "list the methods")?;
        Ok(names)
    }

    /// Inputs of a method.
    pub fn inputs(&mut self, method: &str) -> Result<Vec<ValueInfo>> {
        let mut raw = Vec::new();
        check(self.host.pin_mut().inputs(method, &mut raw), &format!("describe the inputs of {method}"))?;
        raw.into_iter().map(ValueInfo::from_raw).collect()
    }

    /// Outputs of a method.
    pub fn outputs(&mut self, method: &str) -> Result<Vec<ValueInfo>> {
        let mut raw = Vec::new();
        check(self.host.pin_mut().outputs(method, &mut raw), &format!("describe the outputs of {method}"))?;
        raw.into_iter().map(ValueInfo::from_raw).collect()
    }

    /// Executes a method and copies its outputs.
    pub fn execute(&mut self, method: &str, inputs: Vec<Value>) -> Result<Vec<Value>> {
        let inputs: Vec<_> = inputs.into_iter().map(Value::into_raw).collect();
        let mut outputs = Vec::new();
        let mut nanoseconds = 0;
        let status = self.host.pin_mut().execute(method, &inputs, &mut outputs, &mut nanoseconds);
        self.last_call = Duration::from_nanos(nanoseconds);
        check(status, &format!("execute method {method}"))?;
        outputs.into_iter().map(Value::from_raw).collect()
    }

    /// Executes `forward`.
    pub fn forward(&mut self, inputs: Vec<Value>) -> Result<Vec<Value>> {
        self.execute("forward", inputs)
    }

    /// How long ExecuTorch's `Module` took for the last call, without the copies into and out of this crate.
    pub fn last_call(&self) -> Duration {
        self.last_call
    }

    /// The steps that delegates timed since they were last taken; none unless the program was loaded with `traced`.
    pub fn take_steps(&mut self) -> Result<Vec<Step>> {
        let mut raw = Vec::new();
        self.host.pin_mut().take_steps(&mut raw).map_err(|exception| exception_error(&exception, "read the steps"))?;
        let step =
            |raw: ffi::RawStep| Step { name: raw.name, time: Duration::from_nanos(raw.end.saturating_sub(raw.start)) };
        Ok(raw.into_iter().map(step).collect())
    }

    /// The ETDump so far; empty unless the program was loaded with `traced`.
    pub fn take_trace(&mut self) -> Result<Vec<u8>> {
        self.host.pin_mut().take_trace().map_err(|exception| exception_error(&exception, "read the trace"))
    }
}

impl ValueInfo {
    fn from_raw(raw: ffi::RawInfo) -> Result<Self> {
        Ok(match raw.tag {
            ffi::ValueTag::Tensor => {
                ValueInfo::Tensor { scalar_type: ScalarType::from_number(raw.scalar_type)?, sizes: raw.sizes }
            }
            ffi::ValueTag::None | ffi::ValueTag::Int | ffi::ValueTag::Double | ffi::ValueTag::Bool => ValueInfo::Scalar,
            _ => ValueInfo::Other,
        })
    }
}

fn text(path: &Path) -> Result<String> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| Error::host(format!("path {}: found bytes that are no UTF-8", path.display())))
}
