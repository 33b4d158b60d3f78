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
    /// The memory in words.
    pub fn memory_lines(&self) -> String {
        let kinds = kinds(&self.device).map(|(kind, bytes)| format!("{kind} {:.1}", mebibytes(bytes)));
        let host = self.host_peak.map(|bytes| format!("{:.1} MiB", mebibytes(bytes)));
        let host = host.unwrap_or_else(|| "not known on this system".to_owned());
        format!("device memory, MiB: {}\nhost memory, peak: {host}", kinds.join(", "))
    }

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

/// Both times of loading, in words.
pub fn loads_line(loads: [Duration; 2]) -> String {
    let [first, second] = loads.map(|load| load.as_secs_f64());
    format!("load: {first:.3} s, again in the same process: {second:.3} s")
}

/// The columns of [`table_line`].
pub const TABLE_HEAD: &str = "                  median ms    fastest    slowest    tokens/s";

/// A run as a line of the table.
pub fn table_line(run: Run, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Skipped(why) => format!("{run:16} skipped: {why}"),
        Outcome::Timed(times) => {
            let (fastest, slowest) = times.range();
            let [median, fastest, slowest] = [times.median(), fastest, slowest].map(milliseconds);
            format!("{run:16} {median:10.3} {fastest:10.3} {slowest:10.3} {:11.1}", tokens_per_second(run, times))
        }
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
    fn each_run_has_a_line_under_the_head() {
        let report = report();
        let lines: Vec<_> = report.runs.iter().map(|(run, outcome)| table_line(*run, outcome)).collect();
        let timed = "prefill 300           3.000      2.000      4.000    100000.0";
        assert_eq!(lines, [timed, "decode at 2000   skipped: too deep"]);
        assert_eq!(TABLE_HEAD.len(), timed.len());
        assert_eq!(loads_line(report.loads), "load: 2.000 s, again in the same process: 1.000 s");
        let memory = report.memory_lines();
        assert!(memory.starts_with("device memory, MiB: weights 3.0, caches 0.0, "), "{memory}");
        assert!(memory.ends_with("host memory, peak: not known on this system"), "{memory}");
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
