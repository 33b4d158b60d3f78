//! The logits of fixed tokens, so that one device can be compared with another.

use std::path::Path;
use std::{fmt, fs};

use etwgpu_host::{Error, Result};

use crate::args::Args;
use crate::load;
use crate::measure::random_tokens;

/// Tokens of the prompt, and single tokens after it; the logits after the prompt and after each of these are taken.
const PROMPT: usize = 20;
const STEPS: usize = 3;

/// How far the logits may be from the expected ones, as a part of their root mean square.
const LIMIT: f64 = 1e-2;

/// Writes the logits to the file that `--logits` names, and compares them with those in the file that `--expect` names.
pub fn run(args: &Args) -> Result<()> {
    let (mut llama, _) = load(args, false)?;
    let tokens = random_tokens(PROMPT + STEPS, llama.vocabulary());
    let (prompt, steps) = tokens.split_at(PROMPT);
    let mut logits = llama.feed(prompt, 0)?;
    for (position, token) in (PROMPT..).zip(steps) {
        logits.extend(llama.feed(&[*token], position)?);
    }
    if let Some(index) = logits.iter().position(|logit| !logit.is_finite()) {
        return Err(Error::Host(format!("logit {index} is {}, expected a finite number", logits[index])));
    }
    println!("model: {}\nlogits: {} of {} calls", args.model.display(), logits.len(), 1 + STEPS);
    if let Some(path) = &args.logits {
        let bytes: Vec<u8> = logits.iter().flat_map(|logit| logit.to_le_bytes()).collect();
        fs::write(path, bytes).map_err(|error| Error::Host(format!("cannot write {}: {error}", path.display())))?;
    }
    let Some(path) = &args.expect else { return Ok(()) };
    let difference = Difference::new(&logits, &read(path)?)?;
    println!("{difference}");
    difference.check()
}

fn read(path: &Path) -> Result<Vec<f32>> {
    let bytes = fs::read(path).map_err(|error| Error::Host(format!("--expect: {}: {error}", path.display())))?;
    let (words, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(Error::Host(format!("--expect: found {} bytes, expected a multiple of 4", bytes.len())));
    }
    Ok(words.iter().map(|&word| f32::from_le_bytes(word)).collect())
}

/// How far apart two lists of logits are.
struct Difference {
    largest: f64,
    relative: f64,
}

impl Difference {
    fn new(found: &[f32], expected: &[f32]) -> Result<Self> {
        if found.len() != expected.len() {
            let (found, expected) = (expected.len(), found.len());
            return Err(Error::Host(format!("--expect: found {found} logits, expected {expected}")));
        }
        let pairs = found.iter().zip(expected).map(|(&a, &b)| (f64::from(a), f64::from(b)));
        let (mut largest, mut errors, mut squares) = (0f64, 0.0, 0.0);
        for (a, b) in pairs {
            largest = largest.max((a - b).abs());
            errors += (a - b).powi(2);
            squares += b * b;
        }
        Ok(Self { largest, relative: (errors / squares.max(f64::MIN_POSITIVE)).sqrt() })
    }

    fn check(&self) -> Result<()> {
        if self.relative <= LIMIT {
            return Ok(());
        }
        Err(Error::Host(format!("the logits differ: found {self}, expected at most {LIMIT}")))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "root mean square of the differences, as a part of the logits': {:.2e}, ", self.relative)?;
        write!(f, "largest difference: {:.2e}", self.largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_relative_to_all_logits() -> Result<()> {
        let of = |found: &[f32]| Difference::new(found, &[3.0, -4.0]);
        assert!(of(&[3.0, -4.0])?.check().is_ok());
        assert!(of(&[3.03, -4.03])?.check().is_ok());
        for far in [[3.1, -4.0], [3.0, 4.0], [f32::NAN, -4.0]] {
            assert!(
                of(&far)?.check().is_err_and(|error| error.to_string().contains("expected at most 0.01")),
                "{far:?}"
            );
        }
        assert!(of(&[3.0]).is_err_and(|error| error.to_string().contains("found 2 logits, expected 1")));
        Ok(())
    }
}
