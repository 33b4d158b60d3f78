use std::str::FromStr;

use crate::bridge::ffi::{OptionKind, RawOption};
use crate::error::Error;

const MAX_KEY_BYTES: usize = 63;
const MAX_TEXT_BYTES: usize = 255;

/// Value of a runtime option, in the types that ExecuTorch has for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// A flag.
    Bool(bool),
    /// A number.
    Int(i32),
    /// At most 255 bytes.
    Text(String),
}

/// A runtime option of the delegate, given when a program is loaded.
///
/// Parsed from `key=value`: `true` and `false` become flags, integers numbers, the rest text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeOption {
    key: String,
    value: OptionValue,
}

impl RuntimeOption {
    /// Fails when the key is empty or longer than 63 bytes, or the text longer than 255 bytes.
    pub fn new(key: impl Into<String>, value: OptionValue) -> Result<Self, Error> {
        let key = key.into();
        if key.is_empty() || key.len() > MAX_KEY_BYTES {
            return Err(Error::host(format!(
                "runtime option {key:?}: the key has {} bytes, expected 1 to {MAX_KEY_BYTES}",
                key.len()
            )));
        }
        match &value {
            OptionValue::Text(text) if text.len() > MAX_TEXT_BYTES => Err(Error::host(format!(
                "runtime option {key}: the text has {} bytes, expected at most {MAX_TEXT_BYTES}",
                text.len()
            ))),
            _ => Ok(Self { key, value }),
        }
    }

    pub(crate) fn to_raw(&self) -> RawOption {
        let (kind, number, text) = match &self.value {
            OptionValue::Bool(flag) => (OptionKind::Bool, i32::from(*flag), String::new()),
            OptionValue::Int(number) => (OptionKind::Int, *number, String::new()),
            OptionValue::Text(text) => (OptionKind::Text, 0, text.clone()),
        };
        RawOption { key: self.key.clone(), kind, number, text }
    }
}

impl FromStr for RuntimeOption {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let Some((key, value)) = text.split_once('=') else {
            return Err(Error::host(format!("runtime option: found {text:?}, expected key=value")));
        };
        let value = match value {
            "true" => OptionValue::Bool(true),
            "false" => OptionValue::Bool(false),
            _ => match value.parse() {
                Ok(number) => OptionValue::Int(number),
                Err(_) => OptionValue::Text(value.to_owned()),
            },
        };
        Self::new(key, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<OptionValue> {
        text.parse::<RuntimeOption>().ok().map(|option| option.value)
    }

    #[test]
    fn types_follow_the_text() {
        assert_eq!(parsed("a=true"), Some(OptionValue::Bool(true)));
        assert_eq!(parsed("a=-3"), Some(OptionValue::Int(-3)));
        assert_eq!(parsed("a=llvmpipe"), Some(OptionValue::Text("llvmpipe".to_owned())));
        assert_eq!(parsed("a="), Some(OptionValue::Text(String::new())));
    }

    #[test]
    fn malformed_options_are_refused() {
        assert_eq!(parsed("a"), None);
        assert_eq!(parsed("=1"), None);
        assert_eq!(parsed(&format!("a={}", "x".repeat(256))), None);
        assert_eq!(parsed(&format!("{}=1", "k".repeat(64))), None);
    }
}
