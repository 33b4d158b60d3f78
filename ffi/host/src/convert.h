#pragma once

#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/backend/options.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/executor/method_meta.h>

#include "etwgpu-host/src/bridge.rs.h"

namespace etwgpu::host {

executorch::runtime::BackendOption to_option(const RawOption& option);

/// EValues of one call and the tensors that they point to; they use the bytes of the raw values in place.
struct Arguments {
  explicit Arguments(rust::Slice<const RawValue> raw);

  std::vector<executorch::extension::TensorPtr> tensors;
  std::vector<executorch::runtime::EValue> values;
};

/// Copies `value`, bytes included.
RawValue to_raw(const executorch::runtime::EValue& value);

/// The description of an input or output; `tensor` counts when `tag` says that it is one.
RawInfo to_info(
    executorch::runtime::Tag tag,
    const executorch::runtime::Result<executorch::runtime::TensorInfo>& tensor);

} // namespace etwgpu::host
