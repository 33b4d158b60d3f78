include(CMakePackageConfigHelpers)
set(_etwgpu_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/executorch_webgpu)

set(_etwgpu_targets executorch_backend_webgpu_static executorch_webgpu_whole)
if(TARGET executorch_backend_webgpu)
  list(APPEND _etwgpu_targets executorch_backend_webgpu)
endif()
install(TARGETS ${_etwgpu_targets} EXPORT executorch_webgpu
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET etwgpu_runner)
  install(TARGETS etwgpu_runner RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES ${ETWGPU_CORE_LIBRARY} DESTINATION ${CMAKE_INSTALL_LIBDIR} RENAME libexecutorch_webgpu.a)
install(FILES include/executorch_webgpu.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT executorch_webgpu NAMESPACE executorch_webgpu:: FILE executorch_webgpu-targets.cmake
  DESTINATION ${_etwgpu_package_dir})

configure_package_config_file(cmake/executorch_webgpu-config.cmake.in executorch_webgpu-config.cmake
  INSTALL_DESTINATION ${_etwgpu_package_dir} PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/executorch_webgpu-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/executorch_webgpu-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/executorch_webgpu-config-version.cmake
  cmake/executorch_webgpu-link.cmake
  DESTINATION ${_etwgpu_package_dir})
