//! The host's callbacks and arguments, seen from Rust.

use super::{
    ETWGPU_ARG_DOUBLE, ETWGPU_ARG_INT, ETWGPU_ARG_NONE, ETWGPU_ARG_TENSOR, ETWGPU_OK, EtwgpuArg, EtwgpuData,
    EtwgpuHost, slice,
};
use crate::error::{Error, Result};
use crate::exec::{DataSource, HostTensor, HostValue, Outputs};
use crate::gpu::Timed;
use crate::graph::{DType, Dims};

pub(super) struct HostData<'a>(pub &'a EtwgpuHost);

impl DataSource for HostData<'_> {
    fn number(&self) -> Option<u64> {
        Some(self.0.data_source).filter(|&number| number != 0)
    }

    fn with(&self, key: &str, read: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let EtwgpuHost { context, get_data, free_data, .. } = *self.0;
        let get_data = get_data.ok_or_else(|| Error::Data(format!("{key}: the host gives no named data")))?;
        let mut data = EtwgpuData { data: std::ptr::null(), len: 0, owner: std::ptr::null_mut() };
        let status = get_data(context, key.as_ptr().cast(), key.len(), &mut data);
        if status != ETWGPU_OK {
            return Err(Error::Data(format!("{key} is not in the program's data (host error {status})")));
        }
        // SAFETY: the host lends `len` bytes until `free_data`.
        let result = unsafe { slice(data.data, data.len, key) }.and_then(read);
        if let Some(free_data) = free_data {
            free_data(context, &mut data);
        }
        result
    }
}

/// # Safety
/// The argument's pointers are null or valid for its lengths.
pub(super) unsafe fn value<'a>(index: usize, arg: &'a EtwgpuArg) -> Result<HostValue<'a>> {
    let what = format!("input {index}");
    match arg.kind {
        ETWGPU_ARG_NONE => Ok(HostValue::None),
        ETWGPU_ARG_INT => Ok(HostValue::Int(arg.int_value)),
        ETWGPU_ARG_DOUBLE => Ok(HostValue::Double(arg.double_value)),
        ETWGPU_ARG_TENSOR => {
            let dtype = dtype(&what, arg)?;
            // SAFETY: as the caller vouches.
            let dims = unsafe { dims(&what, arg) }?;
            // SAFETY: as the caller vouches.
            let bytes = unsafe { slice(arg.data, arg.len, &what) }?;
            Ok(HostValue::Tensor(HostTensor { dtype, dims, bytes }))
        }
        kind => Err(Error::shape(what, format!("argument kind {kind} is unknown"))),
    }
}

fn dtype(what: &str, arg: &EtwgpuArg) -> Result<DType> {
    let number = arg.scalar_type;
    DType::from_scalar_type(number).ok_or_else(|| Error::shape(what, format!("scalar type {number} is not supported")))
}

/// # Safety
/// `dims` and `dim_order` are null or readable for `rank` elements.
unsafe fn dims(what: &str, arg: &EtwgpuArg) -> Result<Dims> {
    // SAFETY: as the caller vouches.
    let sizes = unsafe { slice(arg.dims, arg.rank, what) }?;
    let sizes: Option<Vec<u32>> = sizes.iter().map(|&n| u32::try_from(n).ok()).collect();
    let sizes = sizes.ok_or_else(|| Error::shape(what, "a size is negative"))?;
    let dims = Dims::new(&sizes).map_err(|e| Error::shape(what, e.to_string()))?;
    // SAFETY: as the caller vouches.
    unsafe { check_order(what, arg, &dims) }?;
    Ok(dims)
}

/// Refuses a tensor whose elements are not in row-major order; dimensions of size 1 may stand anywhere.
///
/// # Safety
/// `dim_order` is null or readable for `rank` elements.
unsafe fn check_order(what: &str, arg: &EtwgpuArg, dims: &Dims) -> Result<()> {
    if arg.dim_order.is_null() {
        return Ok(());
    }
    // SAFETY: not null, and the caller vouches for `rank` elements.
    let order = unsafe { slice(arg.dim_order, arg.rank, what) }?;
    let longer = |axis: &&u8| dims.get(usize::from(**axis)).is_none_or(|&n| n != 1);
    if order.iter().filter(longer).is_sorted() {
        return Ok(());
    }
    Err(Error::shape(what, format!("dim order {order:?} of {dims} is not contiguous; call contiguous() first")))
}

pub(super) struct HostOutputs<'a> {
    host: &'a EtwgpuHost,
    args: &'a [EtwgpuArg],
    /// Index of the first output among all arguments.
    first: usize,
}

impl<'a> HostOutputs<'a> {
    pub fn new(host: &'a EtwgpuHost, args: &'a [EtwgpuArg], first: usize) -> Self {
        HostOutputs { host, args, first }
    }

    fn kind(&self, index: usize) -> u32 {
        self.args.get(index).map_or(ETWGPU_ARG_NONE, |arg| arg.kind)
    }
}

/// The bytes of `value` in an integer type that holds it.
fn integer(value: i64, dtype: DType) -> Option<Vec<u8>> {
    Some(match dtype {
        DType::I64 => value.to_le_bytes().to_vec(),
        DType::I32 => i32::try_from(value).ok()?.to_le_bytes().to_vec(),
        DType::I8 => i8::try_from(value).ok()?.to_le_bytes().to_vec(),
        DType::U8 => vec![u8::try_from(value).ok()?],
        DType::Bool => vec![u8::from(value != 0)],
        DType::F16 | DType::F32 | DType::F64 => return None,
    })
}

fn refused(index: usize, what: &str, status: u32) -> Error {
    Error::shape(format!("output {index}"), format!("the host refused {what} (host error {status})"))
}

impl Outputs for HostOutputs<'_> {
    fn dtype(&self, index: usize) -> Option<DType> {
        let arg = self.args.get(index)?;
        (arg.kind == ETWGPU_ARG_TENSOR).then(|| DType::from_scalar_type(arg.scalar_type)).flatten()
    }

    fn tensor(&mut self, index: usize, dims: &Dims) -> Result<&mut [u8]> {
        if let Some(arg) = self.args.get(index).filter(|arg| arg.rank == dims.len()) {
            // SAFETY: the caller of `etwgpu_execute` vouches for `rank` entries.
            unsafe { check_order(&format!("output {index}"), arg, dims) }?;
        }
        let resize = self.host.resize_output.ok_or_else(|| refused(index, "resizing", 0))?;
        let (mut data, mut len) = (std::ptr::null_mut(), 0);
        let status = resize(self.host.context, self.first + index, dims.as_ptr(), dims.len(), &mut data, &mut len);
        if status != ETWGPU_OK {
            return Err(refused(index, &format!("shape {dims}"), status));
        }
        match (data.is_null(), len) {
            (true, 1..) => Err(refused(index, "memory", status)),
            (true, 0) => Ok(&mut []),
            // SAFETY: the host lends `len` writable bytes until the call ends.
            (false, _) => Ok(unsafe { std::slice::from_raw_parts_mut(data, len) }),
        }
    }

    fn scalar(&mut self, index: usize, value: i64) -> Result<()> {
        if self.kind(index) == ETWGPU_ARG_TENSOR {
            let dtype = self.dtype(index).ok_or_else(|| refused(index, "an integer", 0))?;
            let rank = self.args.get(index).map_or(0, |arg| arg.rank).min(Dims::MAX_RANK);
            let bytes = integer(value, dtype)
                .ok_or_else(|| Error::shape(format!("output {index}"), format!("{dtype} does not hold {value}")))?;
            let memory = self.tensor(index, &Dims::new(&vec![1; rank])?)?;
            if memory.len() < bytes.len() {
                return Err(refused(index, "an integer", 0));
            }
            memory.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
            return Ok(());
        }
        let set = self.host.set_scalar.ok_or_else(|| refused(index, "an integer", 0))?;
        match set(self.host.context, self.first + index, value) {
            ETWGPU_OK => Ok(()),
            status => Err(refused(index, "an integer", status)),
        }
    }

    fn timed(&self) -> Timed {
        if self.host.profile.is_some() { Timed::Steps } else { Timed::Nothing }
    }

    fn step(&mut self, name: &str, start: u64, end: u64) {
        if let Some(profile) = self.host.profile {
            profile(self.host.context, name.as_ptr().cast(), name.len(), start, end);
        }
    }
}
