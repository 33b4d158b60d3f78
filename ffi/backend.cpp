#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/platform/runtime.h>

#include "callbacks.h"
#include "convert.h"
#include "executorch_webgpu.h"
#include "webgpu_log.h"

namespace etwgpu {
namespace {

using executorch::runtime::ArrayRef;
using executorch::runtime::BackendExecutionContext;
using executorch::runtime::BackendInitContext;
using executorch::runtime::BackendInterface;
using executorch::runtime::BackendOptionContext;
using executorch::runtime::DelegateHandle;
using executorch::runtime::Result;

constexpr const char* kBackendName = "VulkanBackend";

class WebGpuBackend final : public BackendInterface {
 public:
  bool is_available() const override {
    const bool available = etwgpu_is_available();
    if (!available) {
      ET_LOG(Error, "no GPU adapter found; install a Vulkan driver (for a CPU: Mesa's lavapipe)");
    }
    return available;
  }

  Result<DelegateHandle*> init(
      BackendInitContext& context,
      FreeableBuffer* processed,
      ArrayRef<CompileSpec> compile_specs) const override {
    if (processed == nullptr) {
      ET_LOG(Error, "cannot load a program: there is no payload");
      return Error::InvalidArgument;
    }
    const auto payload = processed->data_safe();
    if (!payload.ok()) {
      return payload.error();
    }
    const auto runtime_specs = context.runtime_specs();
    auto options = allocate<EtwgpuOption>(runtime_specs.size());
    auto specs = allocate<EtwgpuSpec>(compile_specs.size());
    if (options == nullptr || specs == nullptr) {
      return Error::MemoryAllocationFailed;
    }
    for (size_t i = 0; i < runtime_specs.size(); ++i) {
      ET_CHECK_OK_OR_RETURN_ERROR(to_abi(runtime_specs[i], options[i]));
    }
    for (size_t i = 0; i < compile_specs.size(); ++i) {
      specs[i] = to_abi(compile_specs[i]);
    }

    Call call{context.get_named_data_map(), nullptr, {}};
    EtwgpuInit request{};
    request.host = host_of(call);
    request.payload = static_cast<const uint8_t*>(*payload);
    request.payload_len = processed->size();
    request.specs = specs.get();
    request.specs_len = compile_specs.size();
    request.options = options.get();
    request.options_len = runtime_specs.size();
    EtwgpuProgram* program = nullptr;
    const char* method = context.get_method_name();
    const Error error = report(etwgpu_init(&request, &program), "load method", method == nullptr ? "" : method);
    if (error != Error::Ok) {
      return error;
    }
    processed->Free();
    return static_cast<DelegateHandle*>(program);
  }

  Error execute(BackendExecutionContext& context, DelegateHandle* handle, Span<EValue*> values) const override {
    if (handle == nullptr) {
      ET_LOG(Error, "cannot execute a program that is not loaded");
      return Error::DelegateInvalidHandle;
    }
    auto args = allocate<EtwgpuArg>(values.size());
    if (args == nullptr) {
      return Error::MemoryAllocationFailed;
    }
    for (size_t i = 0; i < values.size(); ++i) {
      ET_CHECK_OK_OR_RETURN_ERROR(to_abi(values[i], i, args[i]));
    }
    Call call{nullptr, context.event_tracer(), values};
    const EtwgpuHost host = host_of(call);
    const char* method = context.get_method_name();
    return report(
        etwgpu_execute(static_cast<EtwgpuProgram*>(handle), &host, args.get(), values.size()),
        "execute method",
        method == nullptr ? "" : method);
  }

  void destroy(DelegateHandle* handle) const override {
    if (handle != nullptr) {
      etwgpu_destroy(static_cast<EtwgpuProgram*>(handle));
    }
  }

  Error set_option(BackendOptionContext&, const Span<BackendOption>& options) override {
    for (const BackendOption& option : options) {
      EtwgpuOption view;
      ET_CHECK_OK_OR_RETURN_ERROR(to_abi(option, view));
      ET_CHECK_OK_OR_RETURN_ERROR(report(etwgpu_set_option(&view), "set option", option.key));
    }
    return Error::Ok;
  }

  Error get_option(BackendOptionContext&, Span<BackendOption>& options) override {
    for (BackendOption& option : options) {
      EtwgpuOption key;
      ET_CHECK_OK_OR_RETURN_ERROR(to_abi(option, key));
      EtwgpuOption value{};
      OptionText text{};
      const uint32_t status = etwgpu_get_option(key.key, &value, text.data(), text.size());
      ET_CHECK_OK_OR_RETURN_ERROR(report(status, "get option", option.key));
      ET_CHECK_OK_OR_RETURN_ERROR(from_abi(value, option));
    }
    return Error::Ok;
  }
};

Error register_webgpu() {
  static WebGpuBackend backend;
  if (etwgpu_abi_version() != ETWGPU_ABI_VERSION) {
    executorch::runtime::runtime_init();
    ET_LOG(
        Error,
        "cannot register %s: the delegate library has ABI %u, expected %u",
        kBackendName,
        static_cast<unsigned>(etwgpu_abi_version()),
        static_cast<unsigned>(ETWGPU_ABI_VERSION));
    return Error::NotSupported;
  }
  const Error error = executorch::runtime::register_backend({kBackendName, &backend});
  if (error != Error::Ok) {
    executorch::runtime::runtime_init();
    ET_LOG(Error, "cannot register %s: %s", kBackendName, executorch::runtime::to_string(error));
    ET_LOG(Error, "the name is taken by another delegate or by a second copy of this one; programs run on the first");
  }
  return error;
}

[[maybe_unused]] const Error registered = register_webgpu();

} // namespace
} // namespace etwgpu
