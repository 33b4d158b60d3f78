use std::fmt;

use crate::bridge::ffi;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something did not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// ExecuTorch answered with an error; its log says more.
    ExecuTorch {
        /// What was being done.
        doing: String,
        /// ExecuTorch's error number.
        code: u32,
        /// ExecuTorch's name of that number.
        name: String,
    },
    /// The caller's values do not fit together, or a file cannot be used.
    Host(String),
}

impl Error {
    pub(crate) fn host(sentence: impl Into<String>) -> Self {
        Error::Host(sentence.into())
    }

    /// ExecuTorch's error number, when ExecuTorch was what failed.
    pub fn code(&self) -> Option<u32> {
        match self {
            Error::ExecuTorch { code, .. } => Some(*code),
            Error::Host(_) => None,
        }
    }
}

/// Turns the status of a bridge call into a result; `doing` completes "cannot ...".
pub(crate) fn check(status: std::result::Result<u32, cxx::Exception>, doing: &str) -> Result<()> {
    match status {
        Ok(0) => Ok(()),
        Ok(code) => Err(Error::ExecuTorch { doing: doing.to_owned(), code, name: ffi::error_name(code) }),
        Err(exception) => Err(exception_error(&exception, doing)),
    }
}

pub(crate) fn exception_error(exception: &cxx::Exception, doing: &str) -> Error {
    Error::host(format!("cannot {doing}: {}", exception.what()))
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::ExecuTorch { doing, code, name } => write!(f, "cannot {doing}: {name} ({code})"),
            Error::Host(sentence) => f.write_str(sentence),
        }
    }
}

impl std::error::Error for Error {}
