//! Where things are: the source tree, the user's cache, the Python environment.

use std::path::{Path, PathBuf};

use crate::Result;

/// File name of the plug-in that ExecuTorch programs load.
pub const BACKEND: &str = "libexecutorch_backend_webgpu.so";

/// The root of the source tree.
pub fn root() -> &'static Path {
    let this = Path::new(env!("CARGO_MANIFEST_DIR"));
    this.parent().unwrap_or(this)
}

/// CMake's build folder.
pub fn build_dir() -> PathBuf {
    root().join("build")
}

/// Cargo's target folder: `$CARGO_TARGET_DIR`, or `target`.
pub fn target_dir() -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").filter(|value| !value.is_empty());
    root().join(named.unwrap_or_else(|| "target".into()))
}

/// This project's folder in the user's cache: `$XDG_CACHE_HOME` or `~/.cache`, then `executorch-webgpu`.
pub fn cache_dir() -> Result<PathBuf> {
    let named = |key| std::env::var_os(key).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")));
    Ok(base.ok_or("neither XDG_CACHE_HOME nor HOME is set; one is needed for the cache")?.join("executorch-webgpu"))
}

/// Exported models, as the tests find them.
pub fn models_dir() -> Result<PathBuf> {
    Ok(cache_dir()?.join("models"))
}

/// A Python environment that holds the ExecuTorch wheel, CMake and Ninja.
pub struct Python {
    /// The environment's folder.
    pub venv: PathBuf,
    /// The wheel's package folder: headers, libraries, CMake package, flatc.
    pub executorch: PathBuf,
}

impl Python {
    /// A program of the environment.
    pub fn program(&self, name: &str) -> PathBuf {
        self.venv.join("bin").join(name)
    }
}
