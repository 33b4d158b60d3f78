//! The operator table; or what a program asks of the delegate, and how it would run.

mod pte;
mod report;

use std::io::Write;
use std::process::ExitCode;

use executorch_webgpu::gpu::{Caps, Gpu, Profile};
use executorch_webgpu::options::{OptionValue, Options};
use pte::Program;

const USAGE: &str = "\
etwgpu-ops: prints the operators that the delegate runs, as Markdown; or with a program, for each of its delegates, which
operators it uses, why it would not load, the memory it takes at its largest shape, and its dispatches

  etwgpu-ops [FILE.pte] [--caps minimal|full|device] [--spec KEY=VALUE]... [--steps]

  --caps       the device to plan for: one with WebGPU's guaranteed limits and no feature, a large GPU (default), or the
               one that `adapter` names
  --spec       a runtime option of the delegate, repeatable; true and false are flags, integers are numbers
  --steps      also prints the graph, as the passes left it, with the dispatches of each operator
";

struct Args {
    file: Option<String>,
    caps: String,
    options: Options,
    steps: bool,
}

impl Args {
    /// Reads what [`USAGE`] lists; `None` for `--help`.
    fn parse(words: impl Iterator<Item = String>) -> Result<Option<Args>, String> {
        let mut args = Args { file: None, caps: "full".into(), options: Options::default(), steps: false };
        let mut words = words.flat_map(|word| match word.split_once('=') {
            Some((flag, value)) if flag.starts_with('-') => vec![flag.to_string(), value.to_string()],
            _ => vec![word],
        });
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word}: expected a value"));
            match word.as_str() {
                "--help" | "-h" => return Ok(None),
                "--steps" => args.steps = true,
                "--caps" => args.caps = value()?,
                "--spec" => set(&mut args.options, &value()?)?,
                flag if flag.starts_with('-') || args.file.is_some() => {
                    return Err(format!("found {flag:?}, expected a flag or one program; --help lists the flags"));
                }
                _ => args.file = Some(word),
            }
        }
        Ok(Some(args))
    }

    fn device(&self) -> Result<Caps, String> {
        match self.caps.as_str() {
            "minimal" => Ok(Caps::minimal()),
            "full" => Ok(Caps::full()),
            "device" => {
                let gpu = Gpu::open(self.options.adapter.as_deref(), Profile::Full).map_err(|e| e.to_string())?;
                Ok(gpu.caps().clone())
            }
            other => Err(format!("--caps is {other:?}, expected minimal, full or device")),
        }
    }
}

fn set(options: &mut Options, spec: &str) -> Result<(), String> {
    let (key, text) = spec.split_once('=').ok_or_else(|| format!("--spec is {spec:?}, expected KEY=VALUE"))?;
    let value = match (text.parse(), text.parse()) {
        (Ok(flag), _) => OptionValue::Bool(flag),
        (_, Ok(number)) => OptionValue::Int(number),
        _ => OptionValue::Str(text.into()),
    };
    if options.get(key).is_none() {
        return Err(format!("option {key:?} is unknown"));
    }
    options.set(key, &value).map_err(|error| error.to_string())
}

/// The text that was asked for, and false when a delegate would not load.
fn run(args: &Args) -> Result<(String, bool), String> {
    let Some(file) = &args.file else { return Ok((report::table(), true)) };
    let bytes = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
    let program = Program::parse(&bytes).map_err(|why| format!("{file} is no program: {why}"))?;
    let caps = args.device()?;
    let (mut text, mut runs) = (format!("planned for {} device: {caps}\n", args.caps), true);
    for (index, delegate) in program.delegates.iter().enumerate() {
        let (method, backend, bytes) = (delegate.method, delegate.backend, delegate.payload.len());
        text += &format!("\ndelegate {index} of {method}: {backend}, {bytes} bytes\n");
        if delegate.is_ours() {
            let look = report::Look { caps: &caps, options: &args.options, keys: &program.keys, steps: args.steps };
            let found = look.delegate(delegate);
            runs &= found.is_ok();
            text += &found.unwrap_or_else(|text| text);
        }
    }
    Ok((text, runs))
}

fn main() -> ExitCode {
    let done = match Args::parse(std::env::args().skip(1)) {
        Ok(Some(args)) => run(&args),
        Ok(None) => Ok((USAGE.into(), true)),
        Err(why) => Err(why),
    };
    match done {
        Ok((text, runs)) => {
            // Whoever reads may stop early.
            let _ = std::io::stdout().write_all(text.as_bytes());
            if runs { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(why) => {
            eprintln!("etwgpu-ops: {why}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Option<Args>, String> {
        Args::parse(words.iter().map(|word| word.to_string()))
    }

    #[test]
    fn flags_are_read_in_both_spellings() {
        let args =
            parse(&["a.pte", "--caps=minimal", "--spec", "enable_f16_kv_cache=true", "--steps"]).unwrap().unwrap();
        assert_eq!((args.file.as_deref(), args.caps.as_str(), args.steps), (Some("a.pte"), "minimal", true));
        assert!(args.options.enable_f16_kv_cache);
        assert!(parse(&["--help"]).unwrap().is_none());
        assert_eq!(args.device().unwrap(), Caps::minimal());
    }

    #[test]
    fn mistakes_are_named() {
        for (words, what) in [
            (&["a.pte", "b.pte"][..], "b.pte"),
            (&["--nothing"], "--nothing"),
            (&["--spec"], "--spec"),
            (&["--spec=x"], "KEY=VALUE"),
            (&["--spec=x=1"], "unknown"),
            (&["--spec=sdpa_query_tile=true"], "sdpa_query_tile"),
        ] {
            assert!(parse(words).err().is_some_and(|why| why.contains(what)), "{words:?}");
        }
        let why = parse(&["--caps=none"]).unwrap().unwrap().device().unwrap_err();
        assert!(why.contains("none"), "{why}");
    }
}
