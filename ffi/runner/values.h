#pragma once

#include <vector>

#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/executor/method_meta.h>

#include "flags.h"

namespace etwgpu::runner {

/// Inputs of one method and the tensors that they point to.
struct Inputs {
  std::vector<executorch::extension::TensorPtr> tensors;
  std::vector<executorch::runtime::EValue> values;
};

/// Makes every input of `meta` from the files and shapes in `flags`; throws `Failure` that names the input.
Inputs make_inputs(const executorch::runtime::MethodMeta& meta, const Flags& flags);

/// All bytes of the file at `path`.
std::vector<uint8_t> read_file(const std::string& path);

/// Writes the raw bytes of `value` to `path`.
void write_value(const executorch::runtime::EValue& value, const std::string& path);

/// Writes `len` bytes to `path`.
void write_file(const std::string& path, const void* data, size_t len);

} // namespace etwgpu::runner
