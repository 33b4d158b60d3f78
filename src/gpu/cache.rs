//! The driver's compiled pipelines on disk: a file per adapter, written after a load that compiled something new.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use super::device::lock;

/// First bytes of a file, then the checksum of the rest.
const MAGIC: &[u8; 8] = b"ETWGPUPC";

/// A driver cache that came from a file, or will become one.
pub(super) struct DiskCache {
    pub(super) raw: wgpu::PipelineCache,
    file: PathBuf,
    /// Checksum of what the file holds.
    saved: Mutex<u64>,
}

impl DiskCache {
    /// Opens the cache of an adapter in `directory`; `None` where there is no such thing. A file that is not ours, not whole or
    /// of another driver is ignored.
    pub(super) fn open(device: &wgpu::Device, info: &wgpu::AdapterInfo, directory: &Path) -> Option<DiskCache> {
        let key = wgpu::util::pipeline_cache_key(info)?;
        let file = directory.join(format!("{key}.bin"));
        let data = match std::fs::read(&file) {
            Ok(bytes) => {
                let data = content(&bytes).map(<[u8]>::to_vec);
                if data.is_none() {
                    log::warn!("{} is no pipeline cache, or not a whole one; it is ignored", file.display());
                }
                data
            }
            Err(_) => None,
        };
        let descriptor =
            wgpu::PipelineCacheDescriptor { label: Some("pipelines"), data: data.as_deref(), fallback: true };
        // SAFETY: the data was returned by `get_data` and its checksum holds; wgpu and the driver compare adapter and driver.
        let raw = unsafe { device.create_pipeline_cache(&descriptor) };
        let saved = Mutex::new(data.as_deref().map_or(0, checksum));
        Some(DiskCache { raw, file, saved })
    }

    /// Writes what was compiled since.
    pub(super) fn save(&self) {
        let Some(data) = self.raw.get_data() else { return };
        let mut saved = lock(&self.saved);
        let sum = checksum(&data);
        if *saved == sum {
            return;
        }
        match write(&self.file, &data, sum) {
            Ok(()) => *saved = sum,
            Err(e) => log::warn!("{} cannot be written: {e}", self.file.display()),
        }
    }
}

/// A whole file appears under its name, or none: several processes may write.
fn write(file: &Path, data: &[u8], sum: u64) -> std::io::Result<()> {
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory)?;
    }
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let part = file.with_extension(format!("{}.{count}.part", std::process::id()));
    let fill = || -> std::io::Result<()> {
        let mut out = std::fs::File::create(&part)?;
        out.write_all(MAGIC)?;
        out.write_all(&sum.to_le_bytes())?;
        out.write_all(data)
    };
    let done = fill().and_then(|()| std::fs::rename(&part, file));
    if done.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    done
}

fn content(bytes: &[u8]) -> Option<&[u8]> {
    let (sum, data) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<8>()?;
    (u64::from_le_bytes(*sum) == checksum(data)).then_some(data)
}

/// FNV-1a.
fn checksum(data: &[u8]) -> u64 {
    data.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Where compiled pipelines are kept unless an option says otherwise.
pub(super) fn default_directory() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base =
        set("XDG_CACHE_HOME").or_else(|| set("LOCALAPPDATA")).or_else(|| set("HOME").map(|home| home.join(".cache")));
    Some(base?.join("executorch-webgpu").join("pipelines"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_files_of_ours_have_a_content() {
        let directory = std::env::temp_dir().join(format!("etwgpu-cache-{}", std::process::id()));
        let file = directory.join("a.bin");
        write(&file, b"compiled", checksum(b"compiled")).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(content(&bytes), Some(&b"compiled"[..]));
        for length in 0..bytes.len() {
            assert_eq!(content(&bytes[..length]), None);
        }
        for index in 0..bytes.len() {
            let mut other = bytes.clone();
            other[index] ^= 1;
            assert_eq!(content(&other), None);
        }
    }
}
