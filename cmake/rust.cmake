# Defines executorch_webgpu::core, the static library of the Rust crate: built by cargo, which knows when there is something
# to do, or taken from ETWGPU_RUST_LIBRARY.
set(ETWGPU_RUST_LIBRARY "" CACHE FILEPATH "A ready libexecutorch_webgpu.a; empty: build it with cargo")
if(DEFINED ENV{CARGO_TARGET_DIR})
  set(_etwgpu_default_target_dir $ENV{CARGO_TARGET_DIR})
else()
  set(_etwgpu_default_target_dir ${PROJECT_SOURCE_DIR}/target)
endif()
set(ETWGPU_CARGO_TARGET_DIR ${_etwgpu_default_target_dir} CACHE PATH "Where cargo builds the Rust crate")

if(ETWGPU_RUST_LIBRARY)
  set(ETWGPU_CORE_LIBRARY ${ETWGPU_RUST_LIBRARY})
else()
  find_program(ETWGPU_CARGO cargo HINTS $ENV{CARGO_HOME}/bin $ENV{HOME}/.cargo/bin REQUIRED)
  set(ETWGPU_CORE_LIBRARY ${ETWGPU_CARGO_TARGET_DIR}/release/libexecutorch_webgpu.a)
  add_custom_target(executorch_webgpu_cargo
    COMMAND ${ETWGPU_CARGO} build --release --lib --package executorch-webgpu --target-dir ${ETWGPU_CARGO_TARGET_DIR}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    BYPRODUCTS ${ETWGPU_CORE_LIBRARY}
    COMMENT "Building the Rust crate"
    USES_TERMINAL VERBATIM)
endif()

add_library(executorch_webgpu::core STATIC IMPORTED GLOBAL)
set_target_properties(executorch_webgpu::core PROPERTIES IMPORTED_LOCATION ${ETWGPU_CORE_LIBRARY})
if(TARGET executorch_webgpu_cargo)
  add_dependencies(executorch_webgpu::core executorch_webgpu_cargo)
endif()
