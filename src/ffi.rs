//! The C ABI that the C++ backend calls. `include/executorch_webgpu.h` is generated from this file and `ffi/abi.rs`.
//!
//! Every function returns a status: 0 is success, every other number is a cause of [`Error`]. The sentence that belongs to
//! the last failure on the calling thread is read with [`etwgpu_last_error`]. Out-parameters are written on success only.
//! No panic leaves this file: each entry point runs inside `guard`.

use std::cell::RefCell;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use crate::error::{Error, Result};
use crate::exec::Program;
use crate::gpu::{self, Memory, MemoryKind, Profile};
use crate::options::{OptionValue, Options};

mod abi;
mod host;
mod logger;

pub use abi::*;

/// A loaded program: device buffers, pipelines and the plan of one delegate instance. One call at a time; any thread.
pub struct EtwgpuProgram {
    program: Program,
}

thread_local! {
    static LAST_ERROR: RefCell<String> = const { RefCell::new(String::new()) };
}

static DEFAULTS: Mutex<Option<Options>> = Mutex::new(None);

fn guard(work: impl FnOnce() -> Result<()>) -> u32 {
    let error = match logger::called(|| catch_unwind(AssertUnwindSafe(work))) {
        Ok(Ok(())) => return ETWGPU_OK,
        Ok(Err(error)) => error,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Error::Internal(format!("panic: {text}"))
        }
    };
    let status = error.status();
    LAST_ERROR.with(|last| *last.borrow_mut() = error.to_string());
    status
}

fn null(what: &str) -> Error {
    Error::shape(what, "is null")
}

/// Copies `text` and a NUL into `buffer`, cut at a character that fits `capacity` bytes; returns the length of the whole
/// text without the NUL.
///
/// # Safety
/// `buffer` is null or writable for `capacity` bytes.
unsafe fn copy_text(text: &str, buffer: *mut c_char, capacity: usize) -> usize {
    if !buffer.is_null() && capacity > 0 {
        let fits = |&length: &usize| length < capacity && text.is_char_boundary(length);
        let length = (0..=text.len().min(capacity)).rev().find(fits).unwrap_or(0);
        // SAFETY: `length + 1 <= capacity`, and the caller vouches for `capacity` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast::<u8>(), length);
            buffer.add(length).write(0);
        }
    }
    text.len()
}

/// # Safety
/// `text` is null or a NUL-terminated string.
unsafe fn string(text: *const c_char, what: &str) -> Result<String> {
    if text.is_null() {
        return Err(null(what));
    }
    // SAFETY: not null, and the caller vouches for the NUL.
    let text = unsafe { CStr::from_ptr(text) };
    Ok(text.to_string_lossy().into_owned())
}

/// # Safety
/// `data` is null or readable for `len` elements.
unsafe fn slice<'a, T>(data: *const T, len: usize, what: &str) -> Result<&'a [T]> {
    match (data.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(null(what)),
        // SAFETY: not null, and the caller vouches for `len` elements.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(data, len) }),
    }
}

/// # Safety
/// The option's pointers are null or NUL-terminated strings.
unsafe fn option(option: &EtwgpuOption) -> Result<(String, OptionValue)> {
    // SAFETY: as the caller vouches.
    let key = unsafe { string(option.key, "option key") }?;
    let value = match option.kind {
        ETWGPU_OPTION_BOOL => OptionValue::Bool(option.int_value != 0),
        ETWGPU_OPTION_INT => OptionValue::Int(option.int_value),
        // SAFETY: as the caller vouches.
        ETWGPU_OPTION_STRING => OptionValue::Str(unsafe { string(option.string_value, &key) }?),
        kind => return Err(Error::Option(format!("{key} has kind {kind}, expected 0, 1 or 2"))),
    };
    Ok((key, value))
}

fn defaults() -> std::sync::MutexGuard<'static, Option<Options>> {
    DEFAULTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Version of this interface; equal to `ETWGPU_ABI_VERSION` of the header it was built with.
#[unsafe(no_mangle)]
pub extern "C" fn etwgpu_abi_version() -> u32 {
    ETWGPU_ABI_VERSION
}

/// True when a GPU adapter, or a CPU that stands in for one, can be opened.
#[unsafe(no_mangle)]
pub extern "C" fn etwgpu_is_available() -> bool {
    catch_unwind(gpu::adapter_available).unwrap_or(false)
}

/// Copies the sentence of the last failure on this thread, NUL-terminated, cut to `capacity` bytes; returns its full
/// length without the NUL.
///
/// # Safety
/// `buffer` is null or writable for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn etwgpu_last_error(buffer: *mut c_char, capacity: usize) -> usize {
    // SAFETY: as the caller vouches.
    LAST_ERROR.with(|last| unsafe { copy_text(&last.borrow(), buffer, capacity) })
}

/// Sets a process-wide default for programs loaded later.
///
/// # Safety
/// `entry` is null or valid; its pointers are null or NUL-terminated strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn etwgpu_set_option(entry: *const EtwgpuOption) -> u32 {
    guard(|| {
        // SAFETY: as the caller vouches.
        let entry = unsafe { entry.as_ref() }.ok_or_else(|| null("option"))?;
        // SAFETY: as the caller vouches.
        let (key, value) = unsafe { option(entry) }?;
        defaults().get_or_insert_default().set(&key, &value)
    })
}

/// Reads a process-wide default. A string goes to `buffer`, which must hold it and a NUL, and `out->string_value` points
/// there.
///
/// # Safety
/// `key` is null or a NUL-terminated string, `out` is null or writable, `buffer` is null or writable for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn etwgpu_get_option(
    key: *const c_char,
    out: *mut EtwgpuOption,
    buffer: *mut c_char,
    capacity: usize,
) -> u32 {
    guard(|| {
        // SAFETY: as the caller vouches.
        let name = unsafe { string(key, "option key") }?;
        // SAFETY: as the caller vouches.
        let out = unsafe { out.as_mut() }.ok_or_else(|| null("out"))?;
        let value = defaults().get_or_insert_default().get(&name);
        let value = value.ok_or_else(|| Error::Option(format!("{name} is unknown")))?;
        let (kind, number, text) = match value {
            OptionValue::Bool(on) => (ETWGPU_OPTION_BOOL, i64::from(on), String::new()),
            OptionValue::Int(number) => (ETWGPU_OPTION_INT, number, String::new()),
            OptionValue::Str(text) => (ETWGPU_OPTION_STRING, 0, text),
        };
        if kind == ETWGPU_OPTION_STRING && (buffer.is_null() || capacity <= text.len()) {
            let needed = text.len() + 1;
            return Err(Error::Option(format!("{name} needs {needed} bytes, the buffer has {capacity}")));
        }
        // SAFETY: as the caller vouches.
        unsafe { copy_text(&text, buffer, capacity) };
        *out = EtwgpuOption { key, kind, int_value: number, string_value: buffer };
        Ok(())
    })
}

/// Loads a program. On success `*out` holds a handle that `etwgpu_destroy` frees.
///
/// # Safety
/// `init` is null or valid with valid pointers for its lengths; `out` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn etwgpu_init(init: *const EtwgpuInit, out: *mut *mut EtwgpuProgram) -> u32 {
    guard(|| {
        // SAFETY: as the caller vouches.
        let init = unsafe { init.as_ref() }.ok_or_else(|| null("init"))?;
        // SAFETY: as the caller vouches.
        let out = unsafe { out.as_mut() }.ok_or_else(|| null("out"))?;
        logger::install(init.host.log);
        let mut options = defaults().clone().unwrap_or_default();
        // SAFETY: as the caller vouches.
        for spec in unsafe { slice(init.specs, init.specs_len, "compile specs") }? {
            // SAFETY: as the caller vouches.
            let key = unsafe { string(spec.key, "compile spec key") }?;
            // SAFETY: as the caller vouches.
            options.compile_spec(&key, unsafe { slice(spec.data, spec.len, &key) }?)?;
        }
        // SAFETY: as the caller vouches.
        for entry in unsafe { slice(init.options, init.options_len, "options") }? {
            // SAFETY: as the caller vouches.
            let (key, value) = unsafe { option(entry) }?;
            options.set(&key, &value)?;
        }
        // SAFETY: as the caller vouches.
        let payload = unsafe { slice(init.payload, init.payload_len, "payload") }?;
        let data = host::HostData(&init.host);
        let program = Program::load_with(payload, &data, options, Profile::Full)?;
        *out = Box::into_raw(Box::new(EtwgpuProgram { program }));
        Ok(())
    })
}

/// Runs a program: `args` are its inputs, then its outputs. All outputs are complete on return. A failure before the
/// device starts changes nothing.
///
/// # Safety
/// `program` is null or a live handle that no other thread uses now; `host` is null or valid; `args` is null or readable
/// for `len` elements with valid pointers for their lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn etwgpu_execute(
    program: *mut EtwgpuProgram,
    host: *const EtwgpuHost,
    args: *const EtwgpuArg,
    len: usize,
) -> u32 {
    guard(|| {
        // SAFETY: as the caller vouches.
        let program = &mut unsafe { program.as_mut() }.ok_or_else(|| null("program"))?.program;
        // SAFETY: as the caller vouches.
        let host = unsafe { host.as_ref() }.ok_or_else(|| null("host"))?;
        // SAFETY: as the caller vouches.
        let args = unsafe { slice(args, len, "args") }?;
        let graph = &program.plan().graph;
        let (inputs, outputs) = (graph.inputs.len(), graph.outputs.len());
        let Some((given, wanted)) = args.split_at_checked(inputs).filter(|(_, rest)| rest.len() == outputs) else {
            return Err(Error::shape(
                "execute",
                format!("{len} arguments, expected {inputs} inputs and {outputs} outputs"),
            ));
        };
        // SAFETY: as the caller vouches.
        let given =
            given.iter().enumerate().map(|(i, arg)| unsafe { host::value(i, arg) }).collect::<Result<Vec<_>>>()?;
        program.execute(&given, &mut host::HostOutputs::new(host, wanted, inputs))
    })
}

/// Frees a program. Null is nothing to free.
///
/// # Safety
/// `program` is null or a live handle, which is dead afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn etwgpu_destroy(program: *mut EtwgpuProgram) {
    if !program.is_null() {
        // SAFETY: the handle came from `Box::into_raw` in `etwgpu_init`, and the caller gives it up.
        let program = unsafe { Box::from_raw(program) };
        guard(|| {
            drop(program);
            Ok(())
        });
    }
}

fn report(memory: Memory) -> EtwgpuMemory {
    EtwgpuMemory {
        weights: memory.of(MemoryKind::Weights),
        caches: memory.of(MemoryKind::Caches),
        activations: memory.of(MemoryKind::Activations),
        scratch: memory.of(MemoryKind::Scratch),
        staging: memory.of(MemoryKind::Staging),
        parameters: memory.of(MemoryKind::Parameters),
        peak: memory.peak(),
    }
}

/// What all programs of the process hold on devices.
///
/// # Safety
/// `out` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn etwgpu_memory(out: *mut EtwgpuMemory) -> u32 {
    guard(|| {
        // SAFETY: as the caller vouches.
        *unsafe { out.as_mut() }.ok_or_else(|| null("out"))? = report(gpu::memory());
        Ok(())
    })
}

/// What one program holds on its device.
///
/// # Safety
/// `program` is null or a live handle, `out` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn etwgpu_program_memory(program: *const EtwgpuProgram, out: *mut EtwgpuMemory) -> u32 {
    guard(|| {
        // SAFETY: as the caller vouches.
        let program = unsafe { program.as_ref() }.ok_or_else(|| null("program"))?;
        // SAFETY: as the caller vouches.
        *unsafe { out.as_mut() }.ok_or_else(|| null("out"))? = report(program.program.memory());
        Ok(())
    })
}

/// Copies the plan of a program in words, NUL-terminated, cut to `capacity` bytes; returns its full length, 0 for null.
///
/// # Safety
/// `program` is null or a live handle, `buffer` is null or writable for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn etwgpu_program_plan(
    program: *const EtwgpuProgram,
    buffer: *mut c_char,
    capacity: usize,
) -> usize {
    // SAFETY: as the caller vouches.
    let Some(program) = (unsafe { program.as_ref() }) else { return 0 };
    let text = catch_unwind(AssertUnwindSafe(|| program.program.plan().to_string())).unwrap_or_default();
    // SAFETY: as the caller vouches.
    unsafe { copy_text(&text, buffer, capacity) }
}
