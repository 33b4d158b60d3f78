use std::time::Duration;

use etwgpu_host::{Llama, Result, argmax};

/// Calls before the timed ones: the first of a length prepares its dispatches, the second finds everything in place.
pub const WARM_UP: usize = 2;

/// What a run does, and at which size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// One call of so many tokens at position 0.
    Prefill(usize),
    /// Single tokens after so many.
    Decode(usize),
}

impl Run {
    /// Why the program cannot do this, if so; `steps` single tokens follow a depth.
    pub fn obstacle(self, llama: &Llama, steps: usize) -> Option<String> {
        let (longest, context) = (llama.longest_call(), llama.context());
        match self {
            Run::Prefill(tokens) if tokens > longest => Some(format!("one call takes at most {longest} tokens")),
            Run::Prefill(tokens) if tokens > context => Some(format!("the context holds {context} tokens")),
            Run::Decode(depth) if depth + steps > context => {
                Some(format!("with {steps} more tokens it passes the context of {context}"))
            }
            _ => None,
        }
    }

    /// Makes warm-up calls and then `calls` timed ones.
    pub fn times(self, llama: &mut Llama, calls: usize) -> Result<Times> {
        let mut times = Vec::new();
        self.prepare(llama)?;
        for call in 0..WARM_UP + calls {
            self.call(llama, call.saturating_sub(WARM_UP))?;
            times.push(llama.last_call());
        }
        Ok(Times::new(times.split_off(WARM_UP)))
    }

    /// Fills the cache as far as the calls need it.
    pub fn prepare(self, llama: &mut Llama) -> Result<()> {
        match self {
            Run::Prefill(_) => Ok(()),
            Run::Decode(depth) => llama.feed(&random_tokens(depth, llama.vocabulary()), 0).map(drop),
        }
    }

    /// Makes the call number `index`, which for single tokens is the distance from the depth.
    pub fn call(self, llama: &mut Llama, index: usize) -> Result<()> {
        let (tokens, position) = match self {
            Run::Prefill(tokens) => (tokens, 0),
            Run::Decode(depth) => (1, depth + index),
        };
        argmax(&llama.feed(&random_tokens(tokens, llama.vocabulary()), position)?).map(drop)
    }

    /// Tokens of one call.
    pub fn tokens(self) -> usize {
        match self {
            Run::Prefill(tokens) => tokens,
            Run::Decode(_) => 1,
        }
    }
}

/// The same tokens in every process, for the same arguments.
pub fn random_tokens(count: usize, vocabulary: usize) -> Vec<u32> {
    let mut state = 0x9E37_79B9u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % vocabulary.max(1) as u64) as u32
    };
    (0..count).map(|_| next()).collect()
}

/// Times of equal calls, in the order that they were made in.
#[derive(Debug)]
pub struct Times {
    made: Vec<Duration>,
    sorted: Vec<Duration>,
}

impl Times {
    pub fn new(made: Vec<Duration>) -> Self {
        let mut sorted = made.clone();
        sorted.sort();
        Self { made, sorted }
    }

    /// Each time.
    pub fn all(&self) -> &[Duration] {
        &self.made
    }

    /// The time in the middle, or the mean of both there; zero when there is none.
    pub fn median(&self) -> Duration {
        let at = |index: usize| self.sorted.get(index).copied().unwrap_or_default();
        let half = self.sorted.len() / 2;
        if self.sorted.len() % 2 == 1 { at(half) } else { (at(half.saturating_sub(1)) + at(half)) / 2 }
    }

    /// The shortest and the longest time.
    pub fn range(&self) -> (Duration, Duration) {
        let [first, last] = [self.sorted.first(), self.sorted.last()].map(|time| time.copied().unwrap_or_default());
        (first, last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(milliseconds: &[u64]) -> Times {
        Times::new(milliseconds.iter().map(|&ms| Duration::from_millis(ms)).collect())
    }

    #[test]
    fn the_median_does_not_depend_on_the_order() {
        assert_eq!(times(&[9, 1, 5]).median(), Duration::from_millis(5));
        assert_eq!(times(&[8, 2, 1, 4]).median(), Duration::from_millis(3));
        assert_eq!(times(&[7]).median(), Duration::from_millis(7));
        assert_eq!(times(&[]).median(), Duration::ZERO);
        assert_eq!(times(&[9, 1, 5]).range(), (Duration::from_millis(1), Duration::from_millis(9)));
        assert_eq!(times(&[9, 1]).all(), [Duration::from_millis(9), Duration::from_millis(1)]);
    }

    #[test]
    fn tokens_are_below_the_vocabulary_and_differ() {
        let tokens = random_tokens(1000, 50);
        assert!(tokens.iter().all(|&token| token < 50));
        assert!((0..50).all(|token| tokens.contains(&token)));
        assert_eq!(tokens[..10], random_tokens(10, 50));
    }
}
