use std::env;
use std::path::{Path, PathBuf};

use libloading::{Library, Symbol};

use crate::error::{Error, Result};

const ABI_VERSION: u32 = 1;
const FILE_NAME: &str = "libexecutorch_backend_webgpu.so";

/// Bytes that the delegate holds on the device, for all programs of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct DeviceMemory {
    /// Immutable constants.
    pub weights: u64,
    /// Constants that a program writes: KV caches.
    pub caches: u64,
    /// Inputs, outputs and intermediate tensors.
    pub activations: u64,
    /// Buffers that one operator at a time uses.
    pub scratch: u64,
    /// Buffers that the host reads outputs from.
    pub staging: u64,
    /// Kernel parameters and per-call values.
    pub parameters: u64,
    /// The highest sum of all of the above so far.
    pub peak: u64,
}

/// The delegate's plug-in; loading it registers the delegate for the rest of the process.
pub struct Plugin {
    library: Library,
}

impl Plugin {
    /// Loads the plug-in at `path`; fails when it is no plug-in of this version.
    pub fn load(path: &Path) -> Result<Self> {
        // SAFETY: the initialisers of the library register a delegate and touch nothing of this program.
        let library = unsafe { Library::new(path) }
            .map_err(|error| Error::host(format!("cannot load the delegate from {}: {error}", path.display())))?;
        let plugin = Self { library };
        // SAFETY: the signature is that of the header of ABI_VERSION; this function never changes.
        let version = unsafe { plugin.symbol::<unsafe extern "C" fn() -> u32>("etwgpu_abi_version")?() };
        if version != ABI_VERSION {
            return Err(Error::host(format!("{}: found ABI {version}, expected {ABI_VERSION}", path.display())));
        }
        Ok(plugin)
    }

    /// Where the plug-in is looked for: `ETWGPU_BACKEND`, else beside the program, in `build` of the working folder, and in
    /// `build` of this repository. Fails with the list when it is nowhere.
    pub fn find() -> Result<PathBuf> {
        if let Some(path) = env::var_os("ETWGPU_BACKEND") {
            return Ok(PathBuf::from(path));
        }
        let beside = env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_owned));
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build");
        let places = beside.into_iter().chain([PathBuf::from("build"), repository]);
        let candidates: Vec<_> = places.map(|folder| folder.join(FILE_NAME)).collect();
        candidates.iter().find(|path| path.exists()).cloned().ok_or_else(|| {
            let list: Vec<_> = candidates.iter().map(|path| path.display().to_string()).collect();
            Error::host(format!("found no delegate at {}; build it with CMake, or set ETWGPU_BACKEND", list.join(", ")))
        })
    }

    /// What the delegate holds on the device now, and its peak.
    pub fn memory(&self) -> Result<DeviceMemory> {
        let mut memory = DeviceMemory::default();
        // SAFETY: the signature is that of the header of ABI_VERSION, which `load` has checked.
        let read = unsafe { self.symbol::<unsafe extern "C" fn(*mut DeviceMemory) -> u32>("etwgpu_memory")? };
        // SAFETY: `memory` is a valid place of the layout that the header declares.
        match unsafe { read(&raw mut memory) } {
            0 => Ok(memory),
            status => {
                Err(Error::host(format!("cannot read the device memory: status {status}, {}", self.last_error()?)))
            }
        }
    }

    /// The delegate's sentence on the last failure of the calling thread; empty when there was none.
    pub fn last_error(&self) -> Result<String> {
        // SAFETY: the signature is that of the header of ABI_VERSION, which `load` has checked.
        let read = unsafe { self.symbol::<unsafe extern "C" fn(*mut u8, usize) -> usize>("etwgpu_last_error")? };
        // SAFETY: a null buffer of no bytes is allowed and asks for the length.
        let len = unsafe { read(std::ptr::null_mut(), 0) };
        let mut text = vec![0u8; len + 1];
        // SAFETY: the buffer has as many bytes as are passed.
        unsafe { read(text.as_mut_ptr(), text.len()) };
        text.truncate(len);
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// # Safety
    /// `T` must be the function pointer type that the header declares for `name`.
    unsafe fn symbol<T>(&self, name: &str) -> Result<Symbol<'_, T>> {
        // SAFETY: the caller promises the type.
        unsafe { self.library.get(name) }.map_err(|error| Error::host(format!("the delegate lacks {name}: {error}")))
    }
}
