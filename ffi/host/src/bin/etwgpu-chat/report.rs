use std::fmt;
use std::fs;
use std::time::Duration;

/// What a conversation took.
pub struct Report {
    pub load: Duration,
    pub prefill: Speed,
    pub decode: Speed,
    pub device_peak_bytes: u64,
}

/// Tokens and the time that they took.
#[derive(Default)]
pub struct Speed {
    pub tokens: usize,
    pub time: Duration,
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.tokens == 0 {
            return f.write_str("no tokens");
        }
        let seconds = self.time.as_secs_f64();
        write!(f, "{:.1} tokens/s ({} tokens in {seconds:.3} s)", self.tokens as f64 / seconds, self.tokens)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "load: {:.3} s", self.load.as_secs_f64())?;
        writeln!(f, "prefill: {}", self.prefill)?;
        writeln!(f, "decode: {}", self.decode)?;
        writeln!(f, "device memory, peak: {:.1} MiB", mebibytes(self.device_peak_bytes))?;
        match host_peak_bytes() {
            Some(bytes) => write!(f, "host memory, peak: {:.1} MiB", mebibytes(bytes)),
            None => write!(f, "host memory, peak: not known on this system"),
        }
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}

/// Highest resident set of this process, from Linux.
fn host_peak_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
