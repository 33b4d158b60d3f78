//! A host in Rust: callbacks over a test model, and the calls that every test makes.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};

use executorch_webgpu::ffi::*;

use crate::common::Model;

/// What the callbacks of one test see.
#[derive(Default)]
pub struct Host {
    pub model: Model,
    pub lent: usize,
    pub returned: usize,
    pub outputs: Vec<Vec<u8>>,
    pub shapes: Vec<Vec<u32>>,
    pub scalars: Vec<(usize, i64)>,
}

fn host<'a>(context: *mut c_void) -> &'a mut Host {
    // SAFETY: every test passes a `Host` that outlives the call.
    unsafe { &mut *context.cast::<Host>() }
}

extern "C" fn get_data(context: *mut c_void, key: *const c_char, len: usize, out: *mut EtwgpuData) -> u32 {
    // SAFETY: the delegate passes `len` readable bytes and a writable `out`.
    let (key, out) = unsafe { (std::slice::from_raw_parts(key.cast::<u8>(), len), &mut *out) };
    let host = host(context);
    let Some(bytes) = host.model.named.get(std::str::from_utf8(key).unwrap()) else { return 32 };
    host.lent += 1;
    *out = EtwgpuData { data: bytes.as_ptr(), len: bytes.len(), owner: null_mut() };
    0
}

extern "C" fn free_data(context: *mut c_void, _: *mut EtwgpuData) {
    host(context).returned += 1;
}

extern "C" fn resize(
    context: *mut c_void,
    index: usize,
    dims: *const u32,
    rank: usize,
    data: *mut *mut u8,
    len: *mut usize,
) -> u32 {
    let host = host(context);
    // SAFETY: the delegate passes `rank` sizes and writable places.
    unsafe {
        host.shapes.push(std::slice::from_raw_parts(dims, rank).to_vec());
        let Some(output) = host.outputs.get_mut(index) else { return 1 };
        *data = output.as_mut_ptr();
        *len = output.len();
    }
    0
}

extern "C" fn set_scalar(context: *mut c_void, index: usize, value: i64) -> u32 {
    host(context).scalars.push((index, value));
    0
}

impl Host {
    pub fn new(model: Model, outputs: &[usize]) -> Host {
        Host { model, outputs: outputs.iter().map(|&n| vec![0xAA; n]).collect(), ..Host::default() }
    }

    pub fn table(&mut self) -> EtwgpuHost {
        EtwgpuHost {
            context: (self as *mut Host).cast(),
            data_source: 0,
            log: None,
            get_data: Some(get_data),
            free_data: Some(free_data),
            resize_output: Some(resize),
            set_scalar: Some(set_scalar),
            profile: None,
        }
    }
}

pub fn request(host: EtwgpuHost, payload: &[u8]) -> EtwgpuInit {
    let (specs, specs_len, options, options_len) = (null(), 0, null(), 0);
    EtwgpuInit { host, payload: payload.as_ptr(), payload_len: payload.len(), specs, specs_len, options, options_len }
}

pub fn load(host: &mut Host) -> *mut EtwgpuProgram {
    let payload = host.model.payload.write();
    let mut program = null_mut();
    // SAFETY: all pointers are valid for the call.
    let status = unsafe { etwgpu_init(&request(host.table(), &payload), &mut program) };
    assert_eq!(status, ETWGPU_OK, "{}", last_error());
    assert_eq!(host.lent, host.returned);
    program
}

pub fn last_error() -> String {
    // SAFETY: the second call has room for what the first one announced.
    unsafe {
        let len = etwgpu_last_error(null_mut(), 0);
        let mut bytes = vec![0u8; len + 1];
        assert_eq!(etwgpu_last_error(bytes.as_mut_ptr().cast(), bytes.len()), len);
        CStr::from_bytes_with_nul(&bytes).unwrap().to_str().unwrap().to_string()
    }
}

#[track_caller]
pub fn assert_refused(status: u32, expected: u32, word: &str) {
    let text = last_error();
    assert_eq!(status, expected, "{text}");
    assert!(text.contains(word), "{text:?} lacks {word:?}");
}

/// A tensor argument.
pub fn tensor<'a>(scalar_type: i32, data: &'a [u8], dims: &'a [i32]) -> EtwgpuArg {
    let (kind, int_value, double_value) = (ETWGPU_ARG_TENSOR, 0, 0.0);
    let (len, rank) = (data.len(), dims.len());
    EtwgpuArg {
        kind,
        scalar_type,
        int_value,
        double_value,
        data: data.as_ptr(),
        len,
        dims: dims.as_ptr(),
        dim_order: null(),
        rank,
    }
}

pub fn scalar(kind: u32, int_value: i64) -> EtwgpuArg {
    EtwgpuArg { kind, int_value, ..tensor(0, &[], &[]) }
}

pub fn execute(program: *mut EtwgpuProgram, host: &mut Host, args: &[EtwgpuArg]) -> u32 {
    let table = host.table();
    // SAFETY: all pointers are valid for the call.
    unsafe { etwgpu_execute(program, &table, args.as_ptr(), args.len()) }
}
