use crate::error::{Error, Result};

/// Splits a command line into flags and their values: `--flag value`, `--flag=value`, or, for those in `switches`, `--flag`
/// alone with an empty value.
pub fn split_flags(words: impl Iterator<Item = String>, switches: &[&str]) -> Result<Vec<(String, String)>> {
    let mut words = words;
    let mut flags = Vec::new();
    while let Some(word) = words.next() {
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
            None => (word, None),
        };
        if !flag.starts_with('-') {
            return Err(Error::host(format!("found {flag:?}, expected a flag; --help lists the flags")));
        }
        let value = match (switches.contains(&flag.as_str()), value) {
            (true, None) => String::new(),
            (true, Some(value)) => return Err(Error::host(format!("{flag}: found {value:?}, expected no value"))),
            (false, Some(value)) => value,
            (false, None) => words.next().ok_or_else(|| Error::host(format!("{flag}: expected a value")))?,
        };
        flags.push((flag, value));
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(words: &[&str]) -> Result<Vec<(String, String)>> {
        split_flags(words.iter().map(|&word| word.to_owned()), &["--raw"])
    }

    #[test]
    fn both_spellings_and_switches_are_read() {
        let flags = split(&["--a", "1", "--b=2=3", "--raw", "--c="]).unwrap_or_default();
        let flags: Vec<_> = flags.iter().map(|(flag, value)| (flag.as_str(), value.as_str())).collect();
        assert_eq!(flags, [("--a", "1"), ("--b", "2=3"), ("--raw", ""), ("--c", "")]);
    }

    #[test]
    fn words_and_missing_or_extra_values_are_refused() {
        for words in [&["word"][..], &["--a"], &["--raw=1"]] {
            assert!(split(words).is_err(), "{words:?}");
        }
    }
}
