use std::path::PathBuf;

use etwgpu_host::{Error, Result, RuntimeOption, split_flags};

pub const USAGE: &str = "\
etwgpu-bench: times a Llama-like ExecuTorch program: loading, prefill, decode; or measures its perplexity,
or compares its logits

  --model FILE      the .pte program (required)
  --data FILE       a .ptd file with external data
  --prefill LIST    tokens of one call at position 0; default: 128,512,2000
  --depth LIST      tokens in the cache before single tokens are decoded; default: 128,2000
  --decode N        single tokens that are timed at each depth, at least 3; default: 64
  --calls N         calls that are timed for each prefill, at least 3; default: 5
  --spec KEY=VALUE  a runtime option of the delegate, repeatable; true and false are flags, integers are numbers
  --backend FILE    the delegate's plug-in; default: $ETWGPU_BACKEND, else build/libexecutorch_backend_webgpu.so
  --json FILE       writes every measured time there
  --profile         then times each step on the device, for one call of the last prefill and of the last depth
  --perplexity FILE measures, instead of times, how well a program that gives the logits of all tokens predicts those in
                    FILE (u32, little-endian)
  --eager FILE      then measures it with enable_f16_accumulate_gemm too, and fails where the default departs by more
                    than 0.1 % from eager PyTorch's perplexity in FILE, or f16 sums by more than 0.5 % from the default
  --logits FILE     writes, instead of timing, the logits after a fixed prompt and after single tokens to FILE (f32,
                    little-endian)
  --expect FILE     compares such logits with those in FILE, of another device or options; fails where they differ by more
                    than 1 % of their root mean square
  --help
";

/// Fewest calls that a median is taken of.
const FEWEST: usize = 3;

/// The command line, parsed.
#[derive(Clone, Debug)]
pub struct Args {
    pub model: PathBuf,
    pub data: Option<PathBuf>,
    pub prefill: Vec<usize>,
    pub depth: Vec<usize>,
    pub decode: usize,
    pub calls: usize,
    pub specs: Vec<String>,
    pub options: Vec<RuntimeOption>,
    pub backend: Option<PathBuf>,
    pub json: Option<PathBuf>,
    pub profile: bool,
    pub perplexity: Option<PathBuf>,
    pub eager: Option<PathBuf>,
    pub logits: Option<PathBuf>,
    pub expect: Option<PathBuf>,
}

impl Args {
    /// Reads the flags that [`USAGE`] lists; `None` for `--help`.
    pub fn parse(words: impl Iterator<Item = String>) -> Result<Option<Self>> {
        let mut args = Args {
            model: PathBuf::new(),
            data: None,
            prefill: vec![128, 512, 2000],
            depth: vec![128, 2000],
            decode: 64,
            calls: 5,
            specs: Vec::new(),
            options: Vec::new(),
            backend: None,
            json: None,
            profile: false,
            perplexity: None,
            eager: None,
            logits: None,
            expect: None,
        };
        for (flag, value) in split_flags(words, &["--help", "-h", "--profile"])? {
            match flag.as_str() {
                "--help" | "-h" => return Ok(None),
                _ => args.set(&flag, value)?,
            }
        }
        if args.model.as_os_str().is_empty() {
            return Err(Error::Host("--model is required; --help lists the flags".to_owned()));
        }
        if args.eager.is_some() && args.perplexity.is_none() {
            return Err(Error::Host("--eager: found no --perplexity, which it belongs to".to_owned()));
        }
        Ok(Some(args))
    }

    fn set(&mut self, flag: &str, value: String) -> Result<()> {
        match flag {
            "--model" => self.model = value.into(),
            "--data" => self.data = Some(value.into()),
            "--backend" => self.backend = Some(value.into()),
            "--json" => self.json = Some(value.into()),
            "--perplexity" => self.perplexity = Some(value.into()),
            "--logits" => self.logits = Some(value.into()),
            "--expect" => self.expect = Some(value.into()),
            "--eager" => self.eager = Some(value.into()),
            "--profile" => self.profile = true,
            "--prefill" => self.prefill = list(flag, &value)?,
            "--depth" => self.depth = list(flag, &value)?,
            "--decode" => self.decode = number(flag, &value, FEWEST)?,
            "--calls" => self.calls = number(flag, &value, FEWEST)?,
            "--spec" => {
                self.options.push(value.parse()?);
                self.specs.push(value);
            }
            _ => return Err(Error::Host(format!("unknown flag {flag}; --help lists the flags"))),
        }
        Ok(())
    }
}

/// Numbers above 0 with commas between them; no text means no numbers.
fn list(flag: &str, text: &str) -> Result<Vec<usize>> {
    text.split(',').filter(|word| !word.is_empty()).map(|word| number(flag, word, 1)).collect()
}

fn number(flag: &str, text: &str, least: usize) -> Result<usize> {
    let number = text.parse().ok().filter(|&number| number >= least);
    number.ok_or_else(|| Error::Host(format!("{flag}: found {text:?}, expected an integer of at least {least}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Option<Args>> {
        Args::parse(words.iter().map(|&word| word.to_owned()))
    }

    #[test]
    fn defaults_hold_for_what_is_not_given() {
        let args = parse(&["--model", "a.pte"]).ok().flatten();
        let args = args.map(|args| (args.prefill, args.depth, args.decode, args.calls, args.profile));
        assert_eq!(args, Some((vec![128, 512, 2000], vec![128, 2000], 64, 5, false)));
    }

    #[test]
    fn flags_replace_the_defaults() -> Result<()> {
        let words = ["--model=a.pte", "--prefill=7,64", "--depth", "", "--decode=3", "--profile", "--spec=adapter=0"];
        let args = parse(&words)?.map(|args| (args.prefill, args.depth, args.decode, args.profile, args.specs));
        assert_eq!(args, Some((vec![7, 64], vec![], 3, true, vec!["adapter=0".to_owned()])));
        assert!(parse(&["--help"])?.is_none());
        Ok(())
    }

    #[test]
    fn mistakes_are_named() {
        for mistake in [
            "--prefill=1,x",
            "--prefill=0",
            "--depth=-1",
            "--decode=2",
            "--calls=1",
            "--spec=x",
            "--warm=1",
            "--eager=a",
        ] {
            let error = parse(&["--model=a.pte", mistake]).err().map(|error| error.to_string());
            let flag = mistake.split('=').next().unwrap_or_default();
            assert!(error.is_some_and(|error| error.contains(flag) || flag == "--spec"), "{mistake}");
        }
        assert!(parse(&[]).is_err_and(|error| error.to_string().contains("--model")));
    }
}
