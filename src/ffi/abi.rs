//! Numbers and structs of the C ABI. Their layout is the interface: change it only with `ETWGPU_ABI_VERSION`.

use std::ffi::{c_char, c_void};

/// Version of the structs and functions below; grows by one with each incompatible change.
pub const ETWGPU_ABI_VERSION: u32 = 1;

/// Success.
pub const ETWGPU_OK: u32 = 0;
/// A broken invariant of the delegate.
pub const ETWGPU_INTERNAL: u32 = 1;
/// The payload is malformed.
pub const ETWGPU_PAYLOAD: u32 = 2;
/// An operator, or a form of one, that the delegate does not run.
pub const ETWGPU_UNSUPPORTED: u32 = 3;
/// Arguments that do not fit the program.
pub const ETWGPU_SHAPE: u32 = 4;
/// A runtime or compile option of a wrong type or value.
pub const ETWGPU_OPTION: u32 = 5;
/// Named data that is missing or too short.
pub const ETWGPU_DATA: u32 = 6;
/// No device, a lost device or an error of the graphics API.
pub const ETWGPU_DEVICE: u32 = 7;
/// Device or host memory is exhausted.
pub const ETWGPU_OUT_OF_MEMORY: u32 = 8;

/// `EtwgpuArg::kind`: an argument without a value.
pub const ETWGPU_ARG_NONE: u32 = 0;
/// `EtwgpuArg::kind`: a tensor.
pub const ETWGPU_ARG_TENSOR: u32 = 1;
/// `EtwgpuArg::kind`: an integer or a bool, in `int_value`.
pub const ETWGPU_ARG_INT: u32 = 2;
/// `EtwgpuArg::kind`: a floating-point number, in `double_value`.
pub const ETWGPU_ARG_DOUBLE: u32 = 3;

/// `EtwgpuOption::kind`: a bool, in `int_value` as 0 or 1.
pub const ETWGPU_OPTION_BOOL: u32 = 0;
/// `EtwgpuOption::kind`: an integer, in `int_value`.
pub const ETWGPU_OPTION_INT: u32 = 1;
/// `EtwgpuOption::kind`: a NUL-terminated string, in `string_value`.
pub const ETWGPU_OPTION_STRING: u32 = 2;

/// Bytes lent by the host until `free_data` is called.
#[repr(C)]
pub struct EtwgpuData {
    /// First byte; at least 4-byte aligned is faster, any alignment works.
    pub data: *const u8,
    /// Number of bytes.
    pub len: usize,
    /// What the host needs in order to free it.
    pub owner: *mut c_void,
}

/// Everything the delegate asks of its host. A callback returns 0 for success. Callbacks that a call cannot need may be
/// null: `get_data` and `free_data` serve `etwgpu_init`, the others `etwgpu_execute`; `log` serves both.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EtwgpuHost {
    /// Passed back to every callback but `log`.
    pub context: *mut c_void,
    /// Names the source of the named data: as long as a program that was loaded from it lives, no other source has this
    /// number. Programs of one source share constants of one key. 0 shares nothing.
    pub data_source: u64,
    /// Writes one line; `level` is 1 error, 2 warning, 3 info, 4 debug. Kept for the life of the process; called from any
    /// thread; `message` is UTF-8 and not NUL-terminated.
    pub log: Option<extern "C" fn(level: u32, message: *const c_char, len: usize)>,
    /// Lends the named data `key` (UTF-8, `key_len` bytes, not NUL-terminated).
    pub get_data:
        Option<extern "C" fn(context: *mut c_void, key: *const c_char, key_len: usize, out: *mut EtwgpuData) -> u32>,
    /// Takes lent data back.
    pub free_data: Option<extern "C" fn(context: *mut c_void, data: *mut EtwgpuData)>,
    /// Resizes the output at `index` among all arguments and tells where its bytes go and how many fit.
    pub resize_output: Option<
        extern "C" fn(
            context: *mut c_void,
            index: usize,
            dims: *const u32,
            rank: usize,
            out_data: *mut *mut u8,
            out_len: *mut usize,
        ) -> u32,
    >,
    /// Sets the output at `index` among all arguments, a scalar EValue, to an integer.
    pub set_scalar: Option<extern "C" fn(context: *mut c_void, index: usize, value: i64) -> u32>,
    /// Records one profiled step; times are nanoseconds on one clock. Null unless a tracer listens.
    pub profile:
        Option<extern "C" fn(context: *mut c_void, name: *const c_char, name_len: usize, start_ns: u64, end_ns: u64)>,
}

/// One argument of `etwgpu_execute`. For an output tensor, `data` and `len` are ignored: `resize_output` gives them.
#[repr(C)]
pub struct EtwgpuArg {
    /// One of `ETWGPU_ARG_*`.
    pub kind: u32,
    /// ExecuTorch's `ScalarType` number, for a tensor.
    pub scalar_type: i32,
    /// Integer or bool value.
    pub int_value: i64,
    /// Floating-point value.
    pub double_value: f64,
    /// First element.
    pub data: *const u8,
    /// Bytes at `data`.
    pub len: usize,
    /// `rank` sizes.
    pub dims: *const i32,
    /// `rank` entries, or null for the contiguous order.
    pub dim_order: *const u8,
    /// Number of dimensions.
    pub rank: usize,
}

/// A runtime option (load-time runtime spec, or process-wide default).
#[repr(C)]
pub struct EtwgpuOption {
    /// NUL-terminated name.
    pub key: *const c_char,
    /// One of `ETWGPU_OPTION_*`.
    pub kind: u32,
    /// Value of a bool or an integer.
    pub int_value: i64,
    /// Value of a string; ExecuTorch's options hold at most 255 bytes.
    pub string_value: *const c_char,
}

/// A compile spec: what the exporter wrote beside the payload.
#[repr(C)]
pub struct EtwgpuSpec {
    /// NUL-terminated name.
    pub key: *const c_char,
    /// Value; may be null when `len` is 0.
    pub data: *const u8,
    /// Bytes at `data`.
    pub len: usize,
}

/// Arguments of `etwgpu_init`.
#[repr(C)]
pub struct EtwgpuInit {
    /// Callbacks for this call.
    pub host: EtwgpuHost,
    /// The delegate payload; not used after the call returns.
    pub payload: *const u8,
    /// Bytes at `payload`.
    pub payload_len: usize,
    /// Compile specs.
    pub specs: *const EtwgpuSpec,
    /// Number of compile specs.
    pub specs_len: usize,
    /// Runtime options of this load; they override the process-wide ones.
    pub options: *const EtwgpuOption,
    /// Number of runtime options.
    pub options_len: usize,
}

/// Bytes held on the device by kind.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EtwgpuMemory {
    /// Immutable constants.
    pub weights: u64,
    /// Constants that the program writes: KV caches.
    pub caches: u64,
    /// Inputs, outputs and intermediate tensors.
    pub activations: u64,
    /// Buffers that only one operator uses at a time.
    pub scratch: u64,
    /// Buffers that the host reads outputs from.
    pub staging: u64,
    /// Kernel parameters and per-call values.
    pub parameters: u64,
    /// The highest sum of all of the above so far.
    pub peak: u64,
}
