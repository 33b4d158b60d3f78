use std::path::Path;
use std::{fmt, fs};

use etwgpu_host::{Error, Perplexity, Result, read_tokens};

use crate::args::Args;
use crate::load;

const F16_SUMS: &str = "enable_f16_accumulate_gemm=true";
const TABLE_HEAD: &str = "                       nll   perplexity  difference";

/// Prints the perplexity of the tokens in a file and, where the command line names eager's, compares.
pub fn run(args: &Args, tokens: &Path) -> Result<()> {
    let tokens = read_tokens(tokens)?;
    let eager = args.eager.as_deref().map(Eager::read).transpose()?;
    println!("model: {}\ntokens: {}", args.model.display(), tokens.len());
    let default = measure(args, &tokens, eager.as_ref())?;
    println!("predicted: {}\n{TABLE_HEAD}", default.predicted);
    let Some(eager) = eager else {
        println!("{}", row("this program", default.nll));
        return Ok(());
    };
    println!("{}", row("eager PyTorch", eager.nll));
    let of_eager = Difference { found: default.nll, expected: eager.nll, from: "eager PyTorch", limit: 0.1 };
    println!("{}  {of_eager}", row("default", default.nll));
    let mut halves = args.clone();
    halves.options.push(F16_SUMS.parse()?);
    let halves = measure(&halves, &tokens, Some(&eager))?;
    let of_default = Difference { found: halves.nll, expected: default.nll, from: "the default", limit: 0.5 };
    println!("{}  {of_default}", row("f16 sums", halves.nll));
    of_eager.check("the default")?;
    of_default.check("f16 sums")
}

fn measure(args: &Args, tokens: &[u32], eager: Option<&Eager>) -> Result<Perplexity> {
    let (mut llama, _) = load(args, false)?;
    let window = llama.longest_call();
    match eager.filter(|eager| eager.window != window) {
        Some(eager) => Err(Error::Host(format!(
            "--eager: found windows of {} tokens, expected the longest call, {window}",
            eager.window
        ))),
        None => Perplexity::measure(&mut llama, tokens),
    }
}

fn row(name: &str, nll: f64) -> String {
    format!("{name:16}{nll:10.6} {:12.6}", nll.exp())
}

/// What eager PyTorch found with the same weights and tokens.
struct Eager {
    window: usize,
    nll: f64,
}

impl Eager {
    fn read(path: &Path) -> Result<Self> {
        let unusable = |why: String| Error::Host(format!("--eager: {}: {why}", path.display()));
        let bytes = fs::read(path).map_err(|error| unusable(error.to_string()))?;
        let json: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| unusable(error.to_string()))?;
        let window = json["window"].as_u64().and_then(|window| usize::try_from(window).ok());
        match (window, json["nll"].as_f64()) {
            (Some(window), Some(nll)) => Ok(Self { window, nll }),
            _ => Err(unusable(format!("found {json}, expected window and nll"))),
        }
    }
}

/// Two values of -ln p, and how many percent apart their perplexities may be.
struct Difference {
    found: f64,
    expected: f64,
    from: &'static str,
    limit: f64,
}

impl Difference {
    fn percent(&self) -> f64 {
        (self.found - self.expected).exp_m1() * 100.0
    }

    fn check(&self, found: &str) -> Result<()> {
        if self.percent().abs() <= self.limit {
            return Ok(());
        }
        Err(Error::Host(format!("perplexity of {found}: found {self}, expected at most {} %", self.limit)))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:+.4} % from {}", self.percent(), self.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(found: f64, expected: f64) -> Difference {
        Difference { found: found.ln(), expected: expected.ln(), from: "eager PyTorch", limit: 0.5 }
    }

    #[test]
    fn differences_are_those_of_perplexities() {
        assert!((difference(10.2, 10.0).percent() - 2.0).abs() < 1e-9);
        assert!(difference(10.04, 10.0).check("a").is_ok());
        assert!(difference(9.96, 10.0).check("a").is_ok());
        for found in [10.06, 9.94, f64::NAN] {
            let error = difference(found, 10.0).check("a").err().map(|error| error.to_string());
            assert!(error.is_some_and(|error| error.ends_with("expected at most 0.5 %")), "{found}");
        }
    }

    #[test]
    fn rows_stand_under_the_head() {
        let row = row("default", 2.5);
        assert_eq!(row, "default           2.500000    12.182494");
        assert!(TABLE_HEAD[..row.len()].ends_with(" perplexity"));
        assert_eq!(difference(9.9, 10.0).to_string(), "-1.0000 % from eager PyTorch");
    }
}
