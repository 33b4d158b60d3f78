use std::path::Path;

use etwgpu_host::{Error, Result};
use tokenizers::Tokenizer;

const END_TOKENS: [&str; 5] = ["<|im_end|>", "<|endoftext|>", "</s>", "<|eot_id|>", "<|end_of_text|>"];
const SYSTEM: &str = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";

/// A tokenizer and the tokens that end a text.
pub struct Text {
    tokenizer: Tokenizer,
    ends: Vec<u32>,
}

impl Text {
    pub fn load(path: &Path) -> Result<Self> {
        let tokenizer = Tokenizer::from_file(path)
            .map_err(|error| Error::Host(format!("cannot read {}: {error}", path.display())))?;
        let ends = END_TOKENS.iter().filter_map(|token| tokenizer.token_to_id(token)).collect();
        Ok(Self { tokenizer, ends })
    }

    /// Token ids of the prompt: as it is when `raw`, else as the user's turn of a ChatML conversation.
    pub fn encode(&self, prompt: &str, raw: bool) -> Result<Vec<u32>> {
        let whole = if raw { prompt.to_owned() } else { chatml(prompt) };
        let encoding = self
            .tokenizer
            .encode(whole, raw)
            .map_err(|error| Error::Host(format!("cannot encode the prompt: {error}")))?;
        match encoding.get_ids() {
            [] => Err(Error::Host("the prompt has no tokens, expected at least one".to_owned())),
            ids => Ok(ids.to_vec()),
        }
    }

    pub fn is_end(&self, token: u32) -> bool {
        self.ends.contains(&token)
    }

    /// Calls `show` with each piece of text that `next` completes, until `next` gives no token.
    pub fn stream(
        &self,
        mut next: impl FnMut() -> Result<Option<u32>>,
        mut show: impl FnMut(&str) -> Result<()>,
    ) -> Result<()> {
        let mut decoder = self.tokenizer.decode_stream(true);
        while let Some(token) = next()? {
            let piece =
                decoder.step(token).map_err(|error| Error::Host(format!("cannot decode token {token}: {error}")))?;
            if let Some(piece) = piece {
                show(&piece)?;
            }
        }
        Ok(())
    }
}

fn chatml(prompt: &str) -> String {
    format!("<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n")
}
