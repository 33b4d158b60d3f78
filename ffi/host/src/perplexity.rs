use std::fs;
use std::path::Path;

use crate::error::{Error, Result};
use crate::llama::Llama;

/// How well a model predicts a text: its perplexity is `exp(nll)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Perplexity {
    /// How many tokens were predicted.
    pub predicted: usize,
    /// Mean of -ln p over them, in nats; p is the probability that the model gives a token after those before it.
    pub nll: f64,
}

impl Perplexity {
    /// Feeds `tokens` in windows of the longest call, each from position 0 on. Every token but a window's first is predicted.
    ///
    /// Fails when the program gives logits of the last token only, when no token is predicted, when one is outside the
    /// vocabulary, or when a logit is not finite.
    pub fn measure(llama: &mut Llama, tokens: &[u32]) -> Result<Self> {
        let (mut sum, mut predicted) = (0.0, 0);
        for window in tokens.chunks(llama.longest_call()).filter(|window| window.len() > 1) {
            let logits = llama.all_logits(window)?;
            for (row, &token) in logits.chunks(llama.vocabulary()).zip(&window[1..]) {
                sum += nll(row, token)?;
                predicted += 1;
            }
        }
        if predicted == 0 {
            return Err(Error::host(format!("found {} tokens in windows, expected at least two in one", tokens.len())));
        }
        Ok(Self { predicted, nll: sum / predicted as f64 })
    }
}

/// The tokens in a file of u32, little-endian.
pub fn read_tokens(path: &Path) -> Result<Vec<u32>> {
    let bytes = fs::read(path).map_err(|error| Error::host(format!("{} is unreadable: {error}", path.display())))?;
    let (tokens, rest) = bytes.as_chunks();
    if !rest.is_empty() {
        return Err(Error::host(format!("{}: found {} bytes, expected 4 a token", path.display(), bytes.len())));
    }
    Ok(tokens.iter().map(|&token| u32::from_le_bytes(token)).collect())
}

/// `ln(sum(exp(logits))) - logits[token]`
fn nll(logits: &[f32], token: u32) -> Result<f64> {
    let Some(&chosen) = usize::try_from(token).ok().and_then(|token| logits.get(token)) else {
        return Err(Error::host(format!("token {token}: found a vocabulary of {}", logits.len())));
    };
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&logit| (f64::from(logit) - f64::from(largest)).exp()).sum();
    let nll = sum.ln() + (f64::from(largest) - f64::from(chosen));
    if nll.is_finite() { Ok(nll) } else { Err(Error::host(format!("-ln p of token {token} is {nll}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nll_is_the_logarithm_of_the_softmax() -> Result<()> {
        let logits = [1.0f32, -2.0, 0.5];
        let sum: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
        for (token, &logit) in logits.iter().enumerate() {
            let expected = -(f64::from(logit).exp() / sum).ln();
            assert!((nll(&logits, token as u32)? - expected).abs() < 1e-12);
        }
        Ok(())
    }

    #[test]
    fn large_logits_do_not_overflow() -> Result<()> {
        assert!((nll(&[3e38, 3e38], 0)? - 2f64.ln()).abs() < 1e-12);
        assert!((nll(&[1000.0, 0.0], 1)? - 1000.0).abs() < 1e-9);
        Ok(())
    }

    #[test]
    fn what_has_no_likelihood_is_refused() {
        assert!(nll(&[0.0, 1.0], 2).is_err_and(|error| error.to_string().contains("token 2")));
        assert!(nll(&[0.0, f32::NAN], 0).is_err());
        assert!(nll(&[f32::INFINITY, 0.0], 0).is_err());
    }
}
