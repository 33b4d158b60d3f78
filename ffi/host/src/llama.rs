use std::time::Duration;

use crate::error::{Error, Result};
use crate::program::{Program, Step, ValueInfo};
use crate::scalar::ScalarType;
use crate::value::{Tensor, Value};

const METHOD: &str = "forward";

/// A program with inputs (tokens `int64 [1, S]`, position `int64 [1]`) and the logits of the last token, or of all, as output.
pub struct Llama {
    program: Program,
    longest_call: usize,
    context: usize,
    vocabulary: usize,
}

impl Llama {
    /// Fails when the program has other inputs or outputs.
    pub fn new(mut program: Program) -> Result<Self> {
        let longest_call = match program.inputs(METHOD)?.as_slice() {
            [
                ValueInfo::Tensor { scalar_type: ScalarType::Long, sizes: tokens },
                ValueInfo::Tensor { scalar_type: ScalarType::Long, sizes: position },
            ] if tokens.len() == 2 && tokens[0] == 1 && position == &[1] => usize::try_from(tokens[1]).unwrap_or(0),
            other => {
                return Err(Error::host(format!(
                    "the program's inputs are {other:?}, expected tokens int64 [1, S] and a position int64 [1]"
                )));
            }
        };
        let vocabulary = match program.outputs(METHOD)?.first() {
            Some(ValueInfo::Tensor { sizes, .. }) => last_size(sizes),
            _ => 0,
        };
        if vocabulary == 0 {
            return Err(Error::host("the program's first output is no tensor of logits"));
        }
        let context = context_length(&mut program)?;
        Ok(Self { program, longest_call: longest_call.max(1), context, vocabulary })
    }

    /// How many positions the KV cache holds.
    pub fn context(&self) -> usize {
        self.context
    }

    /// How many tokens one call takes at most.
    pub fn longest_call(&self) -> usize {
        self.longest_call
    }

    /// How many tokens there are to choose from.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// Feeds `tokens` from `position` on, in as many calls as their number needs, and gives the logits after the last.
    pub fn feed(&mut self, tokens: &[u32], position: usize) -> Result<Vec<f32>> {
        let mut logits = Vec::new();
        let mut at = position;
        for chunk in tokens.chunks(self.longest_call) {
            logits = last_row(&self.call(chunk, at)?)?;
            at += chunk.len();
        }
        Ok(logits)
    }

    /// How long ExecuTorch's `Module` took for the last call that [`Llama::feed`] made.
    pub fn last_call(&self) -> Duration {
        self.program.last_call()
    }

    /// The steps that the delegate timed since they were last taken; see [`Program::take_steps`].
    pub fn take_steps(&mut self) -> Result<Vec<Step>> {
        self.program.take_steps()
    }

    /// Feeds `tokens` from position 0 on in one call and gives the logits after each, row by row; fails when the program gives
    /// those after the last alone.
    pub fn all_logits(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        let logits = self.call(tokens, 0)?;
        let expected = [1, tokens.len(), self.vocabulary];
        if logits.sizes().iter().map(|&size| usize::try_from(size).unwrap_or(0)).eq(expected) {
            return floats(&logits);
        }
        let sizes = logits.sizes();
        Err(Error::host(format!("the logits have sizes {sizes:?}, expected those of all tokens: {expected:?}")))
    }

    fn call(&mut self, tokens: &[u32], position: usize) -> Result<Tensor> {
        let ids: Vec<i64> = tokens.iter().map(|&token| i64::from(token)).collect();
        let len = i32::try_from(ids.len()).map_err(|_| Error::host(format!("{} tokens in one call", ids.len())))?;
        let at = i64::try_from(position).map_err(|_| Error::host(format!("position {position} is too large")))?;
        let inputs = vec![Tensor::new(&[1, len], &ids)?.into(), Tensor::new(&[1], &[at])?.into()];
        match self.program.forward(inputs)?.into_iter().next() {
            Some(Value::Tensor(logits)) => Ok(logits),
            other => Err(Error::host(format!("the program's first output is {other:?}, expected a tensor of logits"))),
        }
    }
}

/// The program tells its context length in a method of its own; one that does not is bounded by the delegate's errors.
fn context_length(program: &mut Program) -> Result<usize> {
    let names = program.method_names()?;
    for method in ["get_max_context_len", "get_max_seq_len"] {
        if names.iter().any(|name| name == method)
            && let Some(Value::Int(length)) = program.execute(method, Vec::new())?.first()
        {
            return usize::try_from(*length)
                .map_err(|_| Error::host(format!("{method}: found {length}, expected a length")));
        }
    }
    Ok(usize::MAX)
}

fn last_size(sizes: &[i32]) -> usize {
    sizes.last().and_then(|&size| usize::try_from(size).ok()).unwrap_or(0)
}

fn floats(logits: &Tensor) -> Result<Vec<f32>> {
    match logits.scalar_type() {
        ScalarType::Half => Ok(logits.elements::<half::f16>()?.into_iter().map(f32::from).collect()),
        _ => logits.elements::<f32>(),
    }
}

fn last_row(logits: &Tensor) -> Result<Vec<f32>> {
    let elements = floats(logits)?;
    let vocabulary = last_size(logits.sizes());
    match elements.len().checked_sub(vocabulary) {
        Some(start) if vocabulary > 0 => Ok(elements[start..].to_vec()),
        _ => Err(Error::host(format!("the logits have sizes {:?}, expected at least one row", logits.sizes()))),
    }
}

/// The most likely token, the lowest of several; fails when a logit is not a number.
pub fn argmax(logits: &[f32]) -> Result<u32> {
    let mut best = 0;
    for (token, &logit) in logits.iter().enumerate() {
        if logit.is_nan() {
            return Err(Error::host(format!("the logit of token {token} is not a number")));
        }
        if logit > logits[best] {
            best = token;
        }
    }
    u32::try_from(best).map_err(|_| Error::host(format!("token {best} is too large")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argmax_takes_the_first_of_equals() -> Result<()> {
        assert_eq!(argmax(&[0.0, 2.0, 1.0, 2.0])?, 1);
        assert!(argmax(&[0.0, f32::NAN]).is_err());
        Ok(())
    }

    #[test]
    fn the_last_row_of_either_form_is_used() -> Result<()> {
        let elements: Vec<f32> = (0..6u8).map(f32::from).collect();
        assert_eq!(last_row(&Tensor::new(&[1, 6], &elements)?)?, elements);
        assert_eq!(last_row(&Tensor::new(&[1, 2, 3], &elements)?)?, [3.0, 4.0, 5.0]);
        assert!(last_row(&Tensor::new::<f32>(&[1, 0], &[])?).is_err());
        Ok(())
    }
}
