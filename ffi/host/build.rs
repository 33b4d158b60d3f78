//! Compiles the bridge against the ExecuTorch package that `EXECUTORCH_DIR` names.

use std::env;
use std::path::{Path, PathBuf};
use std::process::exit;

const HELP: &str = "set EXECUTORCH_DIR to the folder that ExecuTorch's Python package is installed in \
                    (.../site-packages/executorch)";

fn executorch_dir() -> Result<PathBuf, String> {
    let Some(dir) = env::var_os("EXECUTORCH_DIR").map(PathBuf::from) else {
        return Err(format!("EXECUTORCH_DIR is not set: {HELP}"));
    };
    let runtime = dir.join("lib/libexecutorch.so");
    if runtime.exists() {
        return Ok(dir);
    }
    Err(format!("EXECUTORCH_DIR is {}, but {} does not exist: {HELP}", dir.display(), runtime.display()))
}

fn compile(dir: &Path) {
    let include = dir.join("include");
    let c10 = include.join("executorch/runtime/core/portable_type/c10");
    let mut build = cxx_build::bridge("src/bridge.rs");
    build.std("c++17").file("src/bridge.cpp").file("src/convert.cpp").extra_warnings(true);
    for system in [include, c10] {
        build.flag("-isystem").flag(system);
    }
    for define in ["C10_USING_CUSTOM_GENERATED_MACROS", "ET_EVENT_TRACER_ENABLED", "ET_USE_THREADPOOL"] {
        build.define(define, None);
    }
    build.compile("etwgpu_host_bridge");
    for file in ["bridge.rs", "bridge.h", "bridge.cpp", "convert.h", "convert.cpp"] {
        println!("cargo:rerun-if-changed=src/{file}");
    }
}

fn link(lib: &Path) {
    println!("cargo:rustc-link-search=native={}", lib.display());
    println!("cargo:rustc-link-lib=dylib=executorch");
    println!("cargo:rustc-link-lib=dylib=executorch_etdump");
    println!("cargo:rustc-link-lib=dylib=executorch_threadpool");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", lib.display());
    // Nothing refers to the kernels, which register themselves when they are loaded.
    let kernels = lib.join("libexecutorch_kernels_optimized.so");
    println!("cargo:rustc-link-arg=-Wl,--push-state,--no-as-needed,{},--pop-state", kernels.display());
}

fn main() {
    println!("cargo:rerun-if-env-changed=EXECUTORCH_DIR");
    match executorch_dir() {
        Ok(dir) => {
            compile(&dir);
            link(&dir.join("lib"));
        }
        Err(sentence) => {
            eprintln!("{sentence}");
            exit(1);
        }
    }
}
