#pragma once

#include <cstring>
#include <memory>
#include <new>

#include <executorch/runtime/backend/interface.h>

#include "executorch_webgpu.h"

namespace etwgpu {

using executorch::runtime::BackendOption;
using executorch::runtime::CompileSpec;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using OptionText = std::array<char, executorch::runtime::kMaxOptionValueLength>;

/// `count` zeroed elements, or null when memory is exhausted; never throws.
template <typename T>
std::unique_ptr<T[]> allocate(size_t count) {
  return std::unique_ptr<T[]>(new (std::nothrow) T[count]());
}

inline bool is_terminated(const char* text, size_t cap) {
  return std::memchr(text, '\0', cap) != nullptr;
}

/// Views `option`, which must outlive `out`. InvalidArgument when its key or text has no end.
inline Error to_abi(const BackendOption& option, EtwgpuOption& out) {
  out = {};
  if (!is_terminated(option.key, sizeof(option.key))) {
    ET_LOG(Error, "backend option: the key has no terminating NUL in %zu bytes", sizeof(option.key));
    return Error::InvalidArgument;
  }
  out.key = option.key;
  if (const auto* flag = std::get_if<bool>(&option.value)) {
    out.kind = ETWGPU_OPTION_BOOL;
    out.int_value = *flag ? 1 : 0;
  } else if (const auto* number = std::get_if<int>(&option.value)) {
    out.kind = ETWGPU_OPTION_INT;
    out.int_value = *number;
  } else if (const auto* text = std::get_if<OptionText>(&option.value)) {
    if (!is_terminated(text->data(), text->size())) {
      ET_LOG(Error, "backend option %s: the text has no terminating NUL in %zu bytes", option.key, text->size());
      return Error::InvalidArgument;
    }
    out.kind = ETWGPU_OPTION_STRING;
    out.string_value = text->data();
  }
  return Error::Ok;
}

/// Copies the value of `option` into `out`, whose key stays.
inline Error from_abi(const EtwgpuOption& option, BackendOption& out) {
  switch (option.kind) {
    case ETWGPU_OPTION_BOOL:
      out.value = option.int_value != 0;
      return Error::Ok;
    case ETWGPU_OPTION_INT:
      out.value = static_cast<int>(option.int_value);
      return Error::Ok;
    case ETWGPU_OPTION_STRING: {
      OptionText text{};
      if (option.string_value != nullptr) {
        std::strncpy(text.data(), option.string_value, text.size() - 1);
      }
      out.value = text;
      return Error::Ok;
    }
    default:
      ET_LOG(Error, "backend option %s: the delegate answered with the unknown kind %u", out.key, option.kind);
      return Error::Internal;
  }
}

inline EtwgpuSpec to_abi(const CompileSpec& spec) {
  return {spec.key, static_cast<const uint8_t*>(spec.value.buffer), spec.value.nbytes};
}

/// Views argument `index`, which must outlive `out`. InvalidArgument when it is of a kind that no program takes.
inline Error to_abi(const EValue* value, size_t index, EtwgpuArg& out) {
  out = {};
  if (value == nullptr || value->isNone()) {
    out.kind = ETWGPU_ARG_NONE;
  } else if (value->isTensor()) {
    const auto& tensor = value->toTensor();
    out.kind = ETWGPU_ARG_TENSOR;
    out.scalar_type = static_cast<int32_t>(tensor.scalar_type());
    out.data = static_cast<const uint8_t*>(tensor.const_data_ptr());
    out.len = tensor.nbytes();
    out.dims = tensor.sizes().data();
    out.dim_order = tensor.dim_order().data();
    out.rank = tensor.sizes().size();
  } else if (value->isInt()) {
    out.kind = ETWGPU_ARG_INT;
    out.int_value = value->toInt();
  } else if (value->isBool()) {
    out.kind = ETWGPU_ARG_INT;
    out.int_value = value->toBool() ? 1 : 0;
  } else if (value->isDouble()) {
    out.kind = ETWGPU_ARG_DOUBLE;
    out.double_value = value->toDouble();
  } else {
    ET_LOG(
        Error,
        "argument %zu has EValue tag %u, expected a tensor, an integer, a bool, a double or none",
        index,
        static_cast<unsigned>(value->tag));
    return Error::InvalidArgument;
  }
  return Error::Ok;
}

} // namespace etwgpu
