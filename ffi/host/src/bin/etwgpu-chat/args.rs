use std::path::PathBuf;

use etwgpu_host::{Error, Result, RuntimeOption, split_flags};

pub const USAGE: &str = "\
etwgpu-chat: generates text with a Llama-like ExecuTorch program, greedily

  --model FILE            the .pte program (required)
  --tokenizer FILE        its tokenizer.json (required)
  --prompt TEXT           what to say (required)
  --data FILE             a .ptd file with external data
  --max-new-tokens N      default: 64
  --raw                   the prompt as it is; without it, in the ChatML form that SmolLM2 was trained with
  --spec KEY=VALUE        a runtime option of the delegate, repeatable; true and false are flags, integers are numbers
  --backend FILE          the delegate's plug-in; default: $ETWGPU_BACKEND, else build/libexecutorch_backend_webgpu.so
  --help
";

/// The command line, parsed.
pub struct Args {
    pub model: PathBuf,
    pub tokenizer: PathBuf,
    pub prompt: String,
    pub data: Option<PathBuf>,
    pub max_new_tokens: usize,
    pub raw: bool,
    pub options: Vec<RuntimeOption>,
    pub backend: Option<PathBuf>,
}

#[derive(Default)]
struct Partial {
    model: Option<PathBuf>,
    tokenizer: Option<PathBuf>,
    prompt: Option<String>,
    data: Option<PathBuf>,
    max_new_tokens: Option<usize>,
    raw: bool,
    options: Vec<RuntimeOption>,
    backend: Option<PathBuf>,
}

impl Args {
    /// Reads the flags that [`USAGE`] lists; `None` for `--help`.
    pub fn parse(words: impl Iterator<Item = String>) -> Result<Option<Self>> {
        let mut partial = Partial::default();
        for (flag, value) in split_flags(words, &["--help", "-h", "--raw"])? {
            match flag.as_str() {
                "--help" | "-h" => return Ok(None),
                "--raw" => partial.raw = true,
                _ => partial.set(&flag, value)?,
            }
        }
        partial.finish().map(Some)
    }
}

impl Partial {
    fn set(&mut self, flag: &str, value: String) -> Result<()> {
        match flag {
            "--model" => self.model = Some(value.into()),
            "--tokenizer" => self.tokenizer = Some(value.into()),
            "--prompt" => self.prompt = Some(value),
            "--data" => self.data = Some(value.into()),
            "--backend" => self.backend = Some(value.into()),
            "--spec" => self.options.push(value.parse()?),
            "--max-new-tokens" => {
                let number = value.parse().ok().filter(|&number| number > 0);
                self.max_new_tokens = Some(
                    number.ok_or_else(|| failure(format!("{flag}: found {value:?}, expected an integer above 0")))?,
                );
            }
            _ => return Err(unknown(flag)),
        }
        Ok(())
    }

    fn finish(self) -> Result<Args> {
        Ok(Args {
            model: self.model.ok_or_else(|| missing("--model"))?,
            tokenizer: self.tokenizer.ok_or_else(|| missing("--tokenizer"))?,
            prompt: self.prompt.ok_or_else(|| missing("--prompt"))?,
            data: self.data,
            max_new_tokens: self.max_new_tokens.unwrap_or(64),
            raw: self.raw,
            options: self.options,
            backend: self.backend,
        })
    }
}

fn failure(sentence: String) -> Error {
    Error::Host(sentence)
}

fn unknown(flag: &str) -> Error {
    failure(format!("unknown flag {flag}; --help lists the flags"))
}

fn missing(flag: &str) -> Error {
    failure(format!("{flag} is required; --help lists the flags"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Option<Args>> {
        Args::parse(words.iter().map(|&word| word.to_owned()))
    }

    #[test]
    fn both_spellings_are_read() -> Result<()> {
        let words = ["--model", "a.pte", "--tokenizer=t.json", "--prompt=1=2", "--raw", "--spec", "adapter=0"];
        let args = parse(&words)?.ok_or_else(|| missing("--model"))?;
        assert_eq!(args.model, PathBuf::from("a.pte"));
        assert_eq!(args.prompt, "1=2");
        assert_eq!(args.max_new_tokens, 64);
        assert!(args.raw && args.options.len() == 1);
        Ok(())
    }

    #[test]
    fn mistakes_are_named() {
        let complete = ["--model=a", "--tokenizer=b", "--prompt=c"];
        for mistake in ["--temperature=1", "--max-new-tokens=0", "--spec=x", "word", "--model"] {
            let mut words = complete.to_vec();
            words.push(mistake);
            assert!(parse(&words).is_err(), "{mistake}");
        }
        assert!(parse(&complete[1..]).is_err());
    }
}
