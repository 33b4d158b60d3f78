use std::ffi::c_char;
use std::sync::{Mutex, PoisonError};

pub(super) type LogFn = extern "C" fn(level: u32, message: *const c_char, len: usize);

static SINK: Mutex<Option<LogFn>> = Mutex::new(None);

struct HostLogger;

impl log::Log for HostLogger {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        // wgpu and its layers report every object at info level.
        metadata.target().starts_with("executorch_webgpu") || metadata.level() <= log::Level::Error
    }

    fn log(&self, record: &log::Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let sink = *SINK.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(write) = sink {
            let text = record.args().to_string();
            let level = match record.level() {
                log::Level::Error => 1,
                log::Level::Warn => 2,
                log::Level::Info => 3,
                log::Level::Debug | log::Level::Trace => 4,
            };
            write(level, text.as_ptr().cast(), text.len());
        }
    }

    fn flush(&self) {}
}

/// Sends log lines to the host from now on. A Rust host that installed a logger of its own keeps it.
pub(super) fn install(write: Option<LogFn>) {
    let Some(write) = write else { return };
    let mut sink = SINK.lock().unwrap_or_else(PoisonError::into_inner);
    if sink.replace(write).is_none() && log::set_logger(&HostLogger).is_ok() {
        log::set_max_level(log::LevelFilter::Debug);
    }
}
