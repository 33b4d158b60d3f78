use std::fmt;
use std::time::Duration;

use etwgpu_host::{host_peak_bytes, mebibytes};

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
