# Libraries of the system that the Rust static library needs.
function(executorch_webgpu_link_system target)
  if(APPLE)
    set(libraries "-framework Metal" "-framework QuartzCore" "-framework Foundation" "-framework CoreGraphics" objc iconv)
  else()
    set(libraries dl pthread m rt util gcc_s)
  endif()
  set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${libraries})
endfunction()

# Nothing refers to a library that registers itself, so a linker that drops unused libraries must be told to keep it.
function(executorch_webgpu_keep target)
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_OPTIONS
      $<BUILD_INTERFACE:LINKER:--push-state,--no-as-needed,$<TARGET_FILE:${target}>,--pop-state>)
  endif()
endfunction()
