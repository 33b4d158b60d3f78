#pragma once

#include <new>
#include <string_view>

#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/core/event_tracer_hooks_delegate.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>

#include "webgpu_log.h"

namespace etwgpu {

using executorch::runtime::EValue;
using executorch::runtime::EventTracer;
using executorch::runtime::FreeableBuffer;
using executorch::runtime::NamedDataMap;
using executorch::runtime::Span;

/// What the callbacks need of one call into the delegate; lives on the stack of that call.
struct Call {
  const NamedDataMap* data_map = nullptr;
  EventTracer* tracer = nullptr;
  Span<EValue*> args;
};

constexpr uint32_t code(Error error) {
  return static_cast<uint32_t>(error);
}

inline uint32_t get_data(void* context, const char* key, size_t key_len, EtwgpuData* out) {
  const auto* map = static_cast<const Call*>(context)->data_map;
  if (map == nullptr) {
    return code(Error::NotFound);
  }
  auto found = map->get_data(std::string_view(key, key_len));
  if (!found.ok()) {
    return code(found.error());
  }
  auto bytes = found->data_safe();
  if (!bytes.ok()) {
    return code(bytes.error());
  }
  const size_t len = found->size();
  auto* owner = new (std::nothrow) FreeableBuffer(std::move(*found));
  if (owner == nullptr) {
    return code(Error::MemoryAllocationFailed);
  }
  *out = {static_cast<const uint8_t*>(*bytes), len, owner};
  return code(Error::Ok);
}

inline void free_data(void*, EtwgpuData* data) {
  delete static_cast<FreeableBuffer*>(data->owner);
  *data = {};
}

inline EValue* argument(void* context, size_t index) {
  const auto& args = static_cast<const Call*>(context)->args;
  return index < args.size() ? args[index] : nullptr;
}

inline uint32_t resize_output(
    void* context,
    size_t index,
    const uint32_t* dims,
    size_t rank,
    uint8_t** out_data,
    size_t* out_len) {
  EValue* value = argument(context, index);
  if (value == nullptr || !value->isTensor()) {
    return code(Error::InvalidType);
  }
  auto& tensor = value->toTensor();
  const executorch::aten::ArrayRef<uint32_t> sizes(dims, rank);
  const Error error = executorch::runtime::resize_tensor(tensor, sizes);
  if (error != Error::Ok) {
    return code(error);
  }
  *out_data = static_cast<uint8_t*>(tensor.mutable_data_ptr());
  *out_len = tensor.nbytes();
  return code(Error::Ok);
}

inline uint32_t set_scalar(void* context, size_t index, int64_t number) {
  EValue* value = argument(context, index);
  if (value == nullptr) {
    return code(Error::InvalidArgument);
  }
  if (value->isBool()) {
    *value = EValue(number != 0);
  } else if (value->isDouble()) {
    *value = EValue(static_cast<double>(number));
  } else if (value->isInt() || value->isNone()) {
    *value = EValue(number);
  } else {
    return code(Error::InvalidType);
  }
  return code(Error::Ok);
}

inline void profile(void* context, const char* name, size_t name_len, uint64_t start_ns, uint64_t end_ns) {
  char text[512];
  const size_t kept = name_len < sizeof(text) - 1 ? name_len : sizeof(text) - 1;
  std::memcpy(text, name, kept);
  text[kept] = '\0';
  executorch::runtime::event_tracer_log_profiling_delegate(
      static_cast<const Call*>(context)->tracer,
      text,
      static_cast<executorch::runtime::DebugHandle>(executorch::runtime::kUnsetDelegateDebugIntId),
      start_ns,
      end_ns);
}

/// The table for one call; `call` must outlive it.
inline EtwgpuHost host_of(Call& call) {
  EtwgpuHost host{};
  host.context = &call;
  // The map belongs to the program, or to the method: it outlives every handle that was made from it.
  host.data_source = reinterpret_cast<uintptr_t>(call.data_map);
  host.log = log_message;
  host.get_data = get_data;
  host.free_data = free_data;
  host.resize_output = resize_output;
  host.set_scalar = set_scalar;
  host.profile = call.tracer == nullptr ? nullptr : profile;
  return host;
}

} // namespace etwgpu
