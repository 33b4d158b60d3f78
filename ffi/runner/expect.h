#pragma once

#include <vector>

#include <executorch/runtime/core/evalue.h>

#include "flags.h"

namespace etwgpu::runner {

/// Compares `outputs` with the files of `--expect` and prints how far each is from its file; throws `Failure` for one that is
/// further than the tolerance, not a number where a number is expected, or of another size.
void compare_outputs(const std::vector<executorch::runtime::EValue>& outputs, const Flags& flags);

} // namespace etwgpu::runner
