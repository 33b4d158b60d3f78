use std::cell::Cell;
use std::ffi::c_char;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) type LogFn = extern "C" fn(level: u32, message: *const c_char, len: usize);

static SINK: Mutex<Option<LogFn>> = Mutex::new(None);

/// Lines that the host was not told yet.
static WAITING: Mutex<Vec<(u32, String)>> = Mutex::new(Vec::new());

/// Lines that wait at most; later ones are lost.
const MOST_WAITING: usize = 1000;

thread_local! {
    static CALLING: Cell<bool> = const { Cell::new(false) };
}

/// Runs the work of a call of the host. Only its thread tells the host lines: a host may hold a lock of its own meanwhile, as
/// Python does, that another thread would wait for.
pub(super) fn called<T>(work: impl FnOnce() -> T) -> T {
    let before = CALLING.replace(true);
    let output = work();
    tell();
    CALLING.set(before);
    output
}

fn waiting() -> MutexGuard<'static, Vec<(u32, String)>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tell() {
    let lines = std::mem::take(&mut *waiting());
    let sink = *SINK.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(write) = sink {
        lines.iter().for_each(|(level, text)| write(*level, text.as_ptr().cast(), text.len()));
    }
}

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
        let level = match record.level() {
            log::Level::Error => 1,
            log::Level::Warn => 2,
            log::Level::Info => 3,
            log::Level::Debug | log::Level::Trace => 4,
        };
        let mut waiting = waiting();
        if waiting.len() < MOST_WAITING {
            waiting.push((level, record.args().to_string()));
        }
        drop(waiting);
        if CALLING.get() {
            tell();
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::{self, ThreadId};

    static TOLD: Mutex<Vec<(ThreadId, String)>> = Mutex::new(Vec::new());

    extern "C" fn sink(_: u32, text: *const c_char, len: usize) {
        // SAFETY: the logger lends `len` bytes.
        let text = unsafe { std::slice::from_raw_parts(text.cast(), len) };
        TOLD.lock().unwrap().push((thread::current().id(), String::from_utf8_lossy(text).into_owned()));
    }

    #[test]
    fn lines_of_other_threads_are_told_by_the_calling_one() {
        install(Some(sink));
        called(|| thread::spawn(|| log::warn!(target: "executorch_webgpu", "from a thread")).join().unwrap());
        let told = TOLD.lock().unwrap();
        let from = told.iter().find(|(_, text)| text == "from a thread").map(|(id, _)| *id);
        assert_eq!(from, Some(thread::current().id()));
    }
}
