# executorch_webgpu::backend_static: link it to a program, and the whole archive with the registration goes into it.
add_library(executorch_backend_webgpu_static STATIC $<TARGET_OBJECTS:executorch_webgpu_glue>)
set_target_properties(executorch_backend_webgpu_static PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME backend_archive)
add_library(executorch_webgpu::backend_archive ALIAS executorch_backend_webgpu_static)

executorch_webgpu_link_system(executorch_webgpu::core)
add_library(executorch_webgpu_whole INTERFACE)
set_target_properties(executorch_webgpu_whole PROPERTIES EXPORT_NAME backend_static)
target_include_directories(executorch_webgpu_whole INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(executorch_webgpu_whole INTERFACE
  $<LINK_LIBRARY:WHOLE_ARCHIVE,executorch_webgpu::backend_archive> executorch_webgpu::core ${ETWGPU_RUNTIME})
add_library(executorch_webgpu::backend_static ALIAS executorch_webgpu_whole)
