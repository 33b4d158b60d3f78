//! Times a language model through ExecuTorch's `Module`: loading, prefill, decode, and each step on the device; or
//! measures its perplexity; or compares its logits with another device's.

mod args;
mod logits;
mod measure;
mod perplexity;
mod profile;
mod report;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use etwgpu_host::{Error, Llama, Plugin, Program, ProgramFiles, Result, host_peak_bytes};
use serde_json::json;

use args::{Args, USAGE};
use measure::Run;
use profile::Profile;
use report::{Outcome, Report, TABLE_HEAD, loads_line, table_line};

fn load(args: &Args, traced: bool) -> Result<(Llama, Duration)> {
    let files = ProgramFiles { program: args.model.clone(), data: args.data.iter().cloned().collect(), traced };
    let start = Instant::now();
    let mut program = Program::load(&files, &args.options)?;
    program.load_method("forward")?;
    let time = start.elapsed();
    Ok((Llama::new(program)?, time))
}

/// Measures and prints line by line.
fn measure(args: &Args, plugin: &Plugin) -> Result<Report> {
    println!("model: {}", args.model.display());
    let (llama, first) = load(args, false)?;
    drop(llama);
    let (mut llama, second) = load(args, false)?;
    let loads = [first, second];
    println!("{}\n{TABLE_HEAD}", loads_line(loads));
    let prefill = args.prefill.iter().map(|&tokens| (Run::Prefill(tokens), args.calls));
    let decode = args.depth.iter().map(|&depth| (Run::Decode(depth), args.decode));
    let mut runs = Vec::new();
    for (run, calls) in prefill.chain(decode) {
        let outcome = match run.obstacle(&llama, args.decode) {
            Some(why) => Outcome::Skipped(why),
            None => Outcome::Timed(run.times(&mut llama, calls)?),
        };
        println!("{}", table_line(run, &outcome));
        runs.push((run, outcome));
    }
    let report = Report { loads, device: plugin.memory()?, host_peak: host_peak_bytes(), runs };
    println!("{}", report.memory_lines());
    Ok(report)
}

/// Profiles the last prefill and the last depth that were timed.
fn profiles(args: &Args, report: &Report) -> Result<Vec<Profile>> {
    let timed = |is: fn(&Run) -> bool| {
        let runs = report.runs.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Timed(_)));
        runs.map(|(run, _)| *run).rfind(is)
    };
    let runs = [timed(|run| matches!(run, Run::Prefill(_))), timed(|run| matches!(run, Run::Decode(_)))];
    let (mut llama, _) = load(args, true)?;
    runs.into_iter().flatten().map(|run| Profile::take(&mut llama, run)).collect()
}

fn bench(args: &Args) -> Result<()> {
    let plugin = Plugin::load(&args.backend.clone().map_or_else(Plugin::find, Ok)?)?;
    if let Some(tokens) = &args.perplexity {
        return perplexity::run(args, tokens);
    }
    if args.logits.is_some() || args.expect.is_some() {
        return logits::run(args);
    }
    let report = measure(args, &plugin)?;
    let profiles = if args.profile { profiles(args, &report)? } else { Vec::new() };
    profiles.iter().for_each(|profile| println!("\n{profile}"));
    let Some(path) = &args.json else { return Ok(()) };
    let mut json = report.json();
    json["model"] = json!(args.model.display().to_string());
    json["specs"] = json!(args.specs);
    json["profiles"] = profiles.iter().map(Profile::json).collect();
    std::fs::write(path, format!("{json:#}\n"))
        .map_err(|error| Error::Host(format!("cannot write {}: {error}", path.display())))
}

fn run() -> Result<()> {
    match Args::parse(std::env::args().skip(1))? {
        Some(args) => bench(&args),
        None => {
            print!("{USAGE}");
            Ok(())
        }
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("etwgpu-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
