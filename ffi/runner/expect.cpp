#include "expect.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>

#include "values.h"

namespace etwgpu::runner {
namespace {

using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::runtime::EValue;
using Bytes = std::vector<uint8_t>;

/// The largest difference, divided by the largest expected magnitude; infinite if only one of two numbers is NaN.
template <typename T>
double difference(const Tensor& found, const Bytes& expected) {
  double worst = 0;
  double largest = 0;
  for (ssize_t i = 0; i < found.numel(); ++i) {
    T element;
    std::memcpy(&element, expected.data() + i * sizeof(T), sizeof(T));
    const double left = static_cast<double>(found.const_data_ptr<T>()[i]);
    const double right = static_cast<double>(element);
    if (std::isnan(left) != std::isnan(right)) {
      return INFINITY;
    }
    if (left != right && !std::isnan(left)) {
      worst = std::max(worst, std::abs(left - right));
    }
    if (std::isfinite(right)) {
      largest = std::max(largest, std::abs(right));
    }
  }
  return worst == 0 ? 0 : worst / largest;
}

double difference_of_type(const Tensor& found, const Bytes& expected) {
  switch (found.scalar_type()) {
    case ScalarType::Float:
      return difference<float>(found, expected);
    case ScalarType::Double:
      return difference<double>(found, expected);
    case ScalarType::Half:
      return difference<executorch::aten::Half>(found, expected);
    default:
      return std::memcmp(found.const_data_ptr(), expected.data(), expected.size()) == 0 ? 0 : INFINITY;
  }
}

double compare(const EValue& output, const std::string& path, const std::string& name) {
  if (!output.isTensor()) {
    throw Failure(name + " is no tensor, expected one to compare with " + path);
  }
  const Bytes expected = read_file(path);
  const size_t found = output.toTensor().nbytes();
  if (found != expected.size()) {
    throw Failure(
        name + " has " + std::to_string(found) + " bytes, expected the " + std::to_string(expected.size()) + " of " + path);
  }
  return difference_of_type(output.toTensor(), expected);
}

} // namespace

void compare_outputs(const std::vector<EValue>& outputs, const Flags& flags) {
  if (flags.expected.empty()) {
    return;
  }
  if (flags.expected.size() != outputs.size()) {
    throw Failure(
        "--expect: found " + std::to_string(flags.expected.size()) + " files, expected one for each of the " +
        std::to_string(outputs.size()) + " outputs");
  }
  double worst = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string name = "output " + std::to_string(i);
    const double error = compare(outputs[i], flags.expected[i], name);
    std::printf("%s: largest difference: %.2e\n", name.c_str(), error);
    worst = std::max(worst, error);
  }
  if (!(worst <= flags.tolerance)) {
    char text[128];
    std::snprintf(text, sizeof(text), "outputs differ by %.2e, expected at most %.2e", worst, flags.tolerance);
    throw Failure(text);
  }
}

} // namespace etwgpu::runner
