#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <executorch/runtime/backend/options.h>

namespace etwgpu::runner {

/// A failure with a sentence for the user; `main` prints it and exits with 1.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Shape = std::vector<int32_t>;

struct Flags {
  std::string model_path;
  std::string data_path;
  std::string method_name = "forward";
  std::vector<std::string> inputs;
  std::vector<Shape> input_shapes;
  std::string output_file;
  std::vector<std::string> expected;
  double tolerance = 1e-3;
  bool print_output = false;
  uint32_t num_executions = 1;
  std::string etdump_path;
  std::vector<executorch::runtime::BackendOption> specs;
};

/// Text of `--help`.
extern const char* const kUsage;

/// Reads `--flag value` and `--flag=value`. Empty for `--help`; throws `Failure` that names what is wrong.
std::optional<Flags> parse_flags(int argc, char** argv);

} // namespace etwgpu::runner
