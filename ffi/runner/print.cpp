#include "print.h"

#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>

namespace etwgpu::runner {
namespace {

using executorch::aten::ScalarType;
using executorch::aten::Tensor;

template <typename Stored, typename Shown>
void print_elements(std::ostream& out, const Tensor& tensor) {
  const auto* elements = tensor.const_data_ptr<Stored>();
  for (ssize_t i = 0; i < tensor.numel(); ++i) {
    out << (i == 0 ? "" : ", ") << static_cast<Shown>(elements[i]);
  }
}

void print_data(std::ostream& out, const Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case ScalarType::Float:
      return print_elements<float, float>(out, tensor);
    case ScalarType::Double:
      return print_elements<double, double>(out, tensor);
    case ScalarType::Half:
      return print_elements<executorch::aten::Half, float>(out, tensor);
    case ScalarType::BFloat16:
      return print_elements<executorch::aten::BFloat16, float>(out, tensor);
    case ScalarType::Long:
      return print_elements<int64_t, int64_t>(out, tensor);
    case ScalarType::Int:
      return print_elements<int32_t, int32_t>(out, tensor);
    case ScalarType::Short:
      return print_elements<int16_t, int32_t>(out, tensor);
    case ScalarType::Char:
      return print_elements<int8_t, int32_t>(out, tensor);
    case ScalarType::Byte:
      return print_elements<uint8_t, int32_t>(out, tensor);
    case ScalarType::Bool:
      return print_elements<bool, int32_t>(out, tensor);
    default:
      out << tensor.nbytes() << " bytes";
  }
}

} // namespace

void print_value(std::ostream& out, const executorch::runtime::EValue& value) {
  if (value.isTensor()) {
    const Tensor& tensor = value.toTensor();
    out << executorch::runtime::toString(tensor.scalar_type()) << " [";
    for (ssize_t i = 0; i < tensor.dim(); ++i) {
      out << (i == 0 ? "" : ", ") << tensor.size(i);
    }
    out << "]: ";
    print_data(out, tensor);
  } else if (value.isInt()) {
    out << "int: " << value.toInt();
  } else if (value.isDouble()) {
    out << "double: " << value.toDouble();
  } else if (value.isBool()) {
    out << "bool: " << (value.toBool() ? "true" : "false");
  } else {
    out << "EValue of tag " << static_cast<unsigned>(value.tag);
  }
  out << '\n';
}

} // namespace etwgpu::runner
