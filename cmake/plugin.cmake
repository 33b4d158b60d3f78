# executorch_webgpu::backend: libexecutorch_backend_webgpu.so, which registers the delegate in the libexecutorch.so that the
# process has loaded. It exports the C ABI and nothing else.
add_library(executorch_backend_webgpu SHARED $<TARGET_OBJECTS:executorch_webgpu_glue>)
add_library(executorch_webgpu::backend ALIAS executorch_backend_webgpu)
target_include_directories(executorch_backend_webgpu INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# The file and not the target of the runtime: the target carries the search path of this machine's package.
target_link_libraries(executorch_backend_webgpu PRIVATE
  $<BUILD_LOCAL_INTERFACE:executorch_webgpu::core> $<BUILD_LOCAL_INTERFACE:$<TARGET_FILE:${ETWGPU_RUNTIME}>>)

file(STRINGS ${PROJECT_SOURCE_DIR}/include/executorch_webgpu.h _etwgpu_declarations REGEX "etwgpu_[a-z_]+\\(")
set(_etwgpu_exports "")
foreach(_line IN LISTS _etwgpu_declarations)
  string(REGEX MATCH "etwgpu_[a-z_]+" _name "${_line}")
  list(APPEND _etwgpu_exports ${_name})
endforeach()
list(REMOVE_DUPLICATES _etwgpu_exports)

if(APPLE)
  set(_etwgpu_origin @loader_path)
  target_link_options(executorch_backend_webgpu PRIVATE "LINKER:-exported_symbol,_etwgpu_*")
  list(TRANSFORM _etwgpu_exports PREPEND "LINKER:-u,_")
else()
  set(_etwgpu_origin $ORIGIN)
  # The threads and thread-local destructors of the delegate do not survive dlclose.
  target_link_options(executorch_backend_webgpu PRIVATE
    "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map" "LINKER:--gc-sections" "LINKER:-z,nodelete"
    "LINKER:-z,defs" "LINKER:-Bsymbolic" "LINKER:--enable-new-dtags")
  set_target_properties(executorch_backend_webgpu PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
  list(TRANSFORM _etwgpu_exports PREPEND "LINKER:-u,")
endif()
target_link_options(executorch_backend_webgpu PRIVATE ${_etwgpu_exports})

set(_etwgpu_relative ${_etwgpu_origin} ${_etwgpu_origin}/../executorch/lib ${_etwgpu_origin}/../../executorch/lib)
set_target_properties(executorch_backend_webgpu PROPERTIES
  LINKER_LANGUAGE CXX
  EXPORT_NAME backend
  BUILD_RPATH "${_etwgpu_relative}"
  INSTALL_RPATH "${_etwgpu_relative}")
executorch_webgpu_keep(executorch_backend_webgpu)
