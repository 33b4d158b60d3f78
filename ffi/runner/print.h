#pragma once

#include <ostream>

#include <executorch/runtime/core/evalue.h>

namespace etwgpu::runner {

/// Prints the type, the sizes and all elements of `value` on one line.
void print_value(std::ostream& out, const executorch::runtime::EValue& value);

} // namespace etwgpu::runner
