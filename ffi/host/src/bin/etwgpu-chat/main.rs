//! Streams the greedy continuation of a prompt and says how fast it was.

mod args;
mod report;
mod text;

use std::io::{Write, stdout};
use std::process::ExitCode;
use std::time::Instant;

use etwgpu_host::{Error, Llama, Plugin, Program, ProgramFiles, Result, argmax};

use args::{Args, USAGE};
use report::{Report, Speed};
use text::Text;

fn load(args: &Args) -> Result<Llama> {
    let files = ProgramFiles { program: args.model.clone(), data: args.data.iter().cloned().collect(), traced: false };
    let mut program = Program::load(&files, &args.options)?;
    program.load_method("forward")?;
    Llama::new(program)
}

fn show(piece: &str) -> Result<()> {
    let mut out = stdout();
    out.write_all(piece.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Error::Host(format!("cannot write the text: {error}")))
}

/// Streams up to `args.max_new_tokens` tokens after `prompt`; returns the speeds of prefill and decode.
fn generate(llama: &mut Llama, text: &Text, prompt: &[u32], args: &Args) -> Result<(Speed, Speed)> {
    let start = Instant::now();
    let mut token = argmax(&llama.feed(prompt, 0)?)?;
    let prefill = Speed { tokens: prompt.len(), time: start.elapsed() };

    let mut decode = Speed::default();
    let mut shown = 0;
    let next = || {
        if shown > 0 {
            let position = prompt.len() + shown - 1;
            if shown == args.max_new_tokens || position >= llama.context() {
                return Ok(None);
            }
            let start = Instant::now();
            token = argmax(&llama.feed(&[token], position)?)?;
            decode.time += start.elapsed();
            decode.tokens += 1;
        }
        shown += 1;
        Ok(Some(token).filter(|&token| !text.is_end(token)))
    };
    text.stream(next, show)?;
    show("\n")?;
    Ok((prefill, decode))
}

fn chat(args: &Args) -> Result<Report> {
    let plugin = Plugin::load(&args.backend.clone().map_or_else(Plugin::find, Ok)?)?;
    let text = Text::load(&args.tokenizer)?;
    let start = Instant::now();
    let mut llama = load(args)?;
    let load = start.elapsed();

    let prompt = text.encode(&args.prompt, args.raw)?;
    if prompt.len() > llama.context() {
        return Err(Error::Host(format!(
            "the prompt has {} tokens, expected at most the {} of the program's context",
            prompt.len(),
            llama.context()
        )));
    }
    let (prefill, decode) = generate(&mut llama, &text, &prompt, args)?;
    Ok(Report { load, prefill, decode, device_peak_bytes: plugin.memory()?.peak })
}

fn run() -> Result<()> {
    match Args::parse(std::env::args().skip(1))? {
        Some(args) => eprintln!("{}", chat(&args)?),
        None => print!("{USAGE}"),
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("etwgpu-chat: {error}");
            ExitCode::FAILURE
        }
    }
}
