#include <cstdio>

#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/platform/runtime.h>

#include "executorch_webgpu.h"

int main() {
  executorch::runtime::runtime_init();
  const auto* backend = executorch::runtime::get_backend_class("VulkanBackend");
  if (backend == nullptr) {
    std::puts("VulkanBackend is not registered");
    return 1;
  }
  std::printf("ABI %u, available: %d\n", static_cast<unsigned>(etwgpu_abi_version()), backend->is_available());
  return 0;
}
