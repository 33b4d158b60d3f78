//! One error type by cause, and its stable numbers in the C ABI.

use std::fmt;

/// Result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, by cause. The text says what was found and what was expected, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The delegate payload is malformed.
    Payload(String),
    /// An operator, or a form of it, that this delegate does not run.
    Unsupported {
        /// Operator name as in the payload.
        op: String,
        /// What is not supported, and what to do about it.
        why: String,
    },
    /// A call's arguments do not fit the program: rank, size, type, position.
    Shape {
        /// Operator or argument that was refused.
        op: String,
        /// What was found and what was expected.
        why: String,
    },
    /// A runtime or compile option with a wrong type or value.
    Option(String),
    /// Named constant data that is missing or too short.
    Data(String),
    /// No usable device, a lost device or a validation error of the graphics API.
    Device(String),
    /// The device or the host ran out of memory.
    OutOfMemory(String),
    /// A broken invariant of this crate.
    Internal(String),
}

impl Error {
    /// Number of this cause in the C ABI. Numbers are never reused.
    pub fn status(&self) -> u32 {
        match self {
            Error::Internal(_) => 1,
            Error::Payload(_) => 2,
            Error::Unsupported { .. } => 3,
            Error::Shape { .. } => 4,
            Error::Option(_) => 5,
            Error::Data(_) => 6,
            Error::Device(_) => 7,
            Error::OutOfMemory(_) => 8,
        }
    }

    pub(crate) fn shape(op: impl Into<String>, why: impl Into<String>) -> Self {
        Error::Shape { op: op.into(), why: why.into() }
    }

    pub(crate) fn unsupported(op: impl Into<String>, why: impl Into<String>) -> Self {
        Error::Unsupported { op: op.into(), why: why.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Payload(why) => write!(f, "malformed payload: {why}"),
            Error::Unsupported { op, why } => write!(f, "{op} is not supported: {why}"),
            Error::Shape { op, why } => write!(f, "{op}: {why}"),
            Error::Option(why) => write!(f, "invalid option: {why}"),
            Error::Data(why) => write!(f, "constant data: {why}"),
            Error::Device(why) => write!(f, "device: {why}"),
            Error::OutOfMemory(why) => write!(f, "out of memory: {why}"),
            Error::Internal(why) => write!(f, "internal error: {why}"),
        }
    }
}

impl std::error::Error for Error {}
