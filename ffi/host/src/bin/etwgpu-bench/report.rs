use std::fmt;
use std::time::Duration;

use etwgpu_host::{DeviceMemory, mebibytes};
use serde_json::{Value, json};

use crate::measure::{Run, Times};

/// What loading and the runs took, and the memory at their end.
pub struct Report {
    pub loads: [Duration; 2],
    pub device: DeviceMemory,
    pub host_peak: Option<u64>,
    pub runs: Vec<(Run, Outcome)>,
}

/// Times of a run, or why there are none.
pub enum Outcome {
    Timed(Times),
    Skipped(String),
}

/// A duration in milliseconds.
pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn tokens_per_second(run: Run, times: &Times) -> f64 {
    run.tokens() as f64 / times.median().as_secs_f64().max(f64::MIN_POSITIVE)
}

fn kinds(device: &DeviceMemory) -> [(&'static str, u64); 7] {
    [
        ("weights", device.weights),
        ("caches", device.caches),
        ("activations", device.activations),
        ("scratch", device.scratch),
        ("staging", device.staging),
        ("parameters", device.parameters),
        ("peak", device.peak),
    ]
}

impl Report {
    pub fn json(&self) -> Value {
        let run = |(run, outcome): &(Run, Outcome)| match outcome {
            Outcome::Skipped(why) => json!({ "run": run.to_string(), "skipped": why }),
            Outcome::Timed(times) => json!({
                "run": run.to_string(),
                "milliseconds": times.all().iter().map(|&time| milliseconds(time)).collect::<Vec<_>>(),
                "median_milliseconds": milliseconds(times.median()),
                "tokens_per_second": tokens_per_second(*run, times),
            }),
        };
        json!({
            "load_seconds": self.loads.map(|load| load.as_secs_f64()),
            "device_bytes": kinds(&self.device).into_iter().collect::<std::collections::BTreeMap<_, _>>(),
            "host_peak_bytes": self.host_peak,
            "runs": self.runs.iter().map(run).collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, tokens) = match self {
            Run::Prefill(tokens) => ("prefill", tokens),
            Run::Decode(depth) => ("decode at", depth),
        };
        f.pad(&format!("{what} {tokens}"))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.loads.map(|load| load.as_secs_f64());
        writeln!(f, "load: {first:.3} s, again in the same process: {second:.3} s")?;
        write!(f, "device memory, MiB:")?;
        for (index, (kind, bytes)) in kinds(&self.device).into_iter().enumerate() {
            write!(f, "{} {kind} {:.1}", if index == 0 { "" } else { "," }, mebibytes(bytes))?;
        }
        match self.host_peak {
            Some(bytes) => writeln!(f, "\nhost memory, peak: {:.1} MiB", mebibytes(bytes))?,
            None => writeln!(f, "\nhost memory, peak: not known on this system")?,
        }
        write!(f, "{:16} {:>10} {:>10} {:>10} {:>11}", "", "median ms", "fastest", "slowest", "tokens/s")?;
        for (run, outcome) in &self.runs {
            match outcome {
                Outcome::Skipped(why) => write!(f, "\n{run:16} skipped: {why}")?,
                Outcome::Timed(times) => {
                    let (fastest, slowest) = times.range();
                    let [median, fastest, slowest] = [times.median(), fastest, slowest].map(milliseconds);
                    let speed = tokens_per_second(*run, times);
                    write!(f, "\n{run:16} {median:10.3} {fastest:10.3} {slowest:10.3} {speed:11.1}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let times = Times::new([4, 2, 3].map(Duration::from_millis).to_vec());
        let runs = vec![
            (Run::Prefill(300), Outcome::Timed(times)),
            (Run::Decode(2000), Outcome::Skipped("too deep".to_owned())),
        ];
        let loads = [Duration::from_secs(2), Duration::from_secs(1)];
        Report { loads, device: DeviceMemory { weights: 3 << 20, ..Default::default() }, host_peak: None, runs }
    }

    #[test]
    fn the_table_has_a_line_for_each_run() {
        let text = report().to_string();
        assert!(text.contains("load: 2.000 s, again in the same process: 1.000 s"), "{text}");
        assert!(text.contains("weights 3.0, caches 0.0"), "{text}");
        assert!(text.contains("prefill 300           3.000      2.000      4.000    100000.0"), "{text}");
        assert!(text.ends_with("decode at 2000   skipped: too deep"), "{text}");
    }

    #[test]
    fn json_keeps_every_time_in_order() {
        let json = report().json();
        assert_eq!(json["runs"][0]["milliseconds"], json!([4.0, 2.0, 3.0]));
        assert_eq!(json["runs"][1]["skipped"], "too deep");
        assert_eq!(json["device_bytes"]["weights"], 3 << 20);
        assert_eq!(json["load_seconds"], json!([2.0, 1.0]));
    }
}
