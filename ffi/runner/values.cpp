#include "values.h"

#include <cstring>
#include <fstream>
#include <iterator>

#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/tag.h>

namespace etwgpu::runner {
namespace {

using executorch::aten::ScalarType;
using executorch::runtime::EValue;
using executorch::runtime::MethodMeta;
using executorch::runtime::Tag;
using Bytes = std::vector<uint8_t>;

std::string input_name(size_t index) {
  return "input " + std::to_string(index);
}

size_t byte_count(const Shape& shape, ScalarType type, size_t index) {
  size_t bytes = executorch::runtime::elementSize(type);
  for (const int32_t size : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(size), &bytes)) {
      throw Failure(input_name(index) + ": the product of its sizes overflows");
    }
  }
  return bytes;
}

/// The bytes of the input's file, or `expected` zeros when no files are given.
Bytes input_bytes(const Flags& flags, size_t index, size_t expected) {
  if (flags.inputs.empty()) {
    return Bytes(expected);
  }
  Bytes bytes = read_file(flags.inputs[index]);
  if (bytes.size() != expected) {
    throw Failure(
        input_name(index) + ": " + flags.inputs[index] + " has " + std::to_string(bytes.size()) + " bytes, expected " +
        std::to_string(expected));
  }
  return bytes;
}

template <typename T>
EValue scalar(const Flags& flags, size_t index) {
  T number{};
  const Bytes bytes = input_bytes(flags, index, sizeof(T));
  std::memcpy(&number, bytes.data(), sizeof(T));
  return EValue(number);
}

EValue tensor(const MethodMeta& meta, const Flags& flags, size_t index, Inputs& inputs) {
  const auto info = meta.input_tensor_meta(index);
  if (!info.ok()) {
    throw Failure(input_name(index) + ": the program has no description of it");
  }
  const Shape shape = flags.input_shapes.empty() ? Shape(info->sizes().begin(), info->sizes().end())
                                                 : flags.input_shapes[index];
  const ScalarType type = info->scalar_type();
  Bytes bytes = input_bytes(flags, index, byte_count(shape, type, index));
  inputs.tensors.push_back(executorch::extension::make_tensor_ptr(shape, std::move(bytes), type));
  return EValue(*inputs.tensors.back());
}

EValue input(const MethodMeta& meta, const Flags& flags, size_t index, Inputs& inputs) {
  const auto tag = meta.input_tag(index);
  if (!tag.ok()) {
    throw Failure(input_name(index) + ": the program has no description of it");
  }
  switch (*tag) {
    case Tag::Tensor:
      return tensor(meta, flags, index, inputs);
    case Tag::Int:
      return scalar<int64_t>(flags, index);
    case Tag::Double:
      return scalar<double>(flags, index);
    case Tag::Bool:
      return scalar<bool>(flags, index);
    case Tag::None:
      return EValue();
    default:
      throw Failure(
          input_name(index) + " has EValue tag " + std::to_string(static_cast<unsigned>(*tag)) +
          ", expected a tensor, an integer, a bool, a double or none");
  }
}

void check_count(const char* flag, size_t found, size_t expected) {
  if (found != 0 && found != expected) {
    throw Failure(
        std::string(flag) + ": found " + std::to_string(found) + " entries, expected one for each of the " +
        std::to_string(expected) + " inputs");
  }
}

} // namespace

std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Failure("cannot open " + path);
  }
  Bytes bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) {
    throw Failure("cannot read " + path);
  }
  return bytes;
}

Inputs make_inputs(const MethodMeta& meta, const Flags& flags) {
  check_count("--inputs", flags.inputs.size(), meta.num_inputs());
  check_count("--input_shapes", flags.input_shapes.size(), meta.num_inputs());
  Inputs inputs;
  for (size_t i = 0; i < meta.num_inputs(); ++i) {
    inputs.values.push_back(input(meta, flags, i, inputs));
  }
  return inputs;
}

void write_file(const std::string& path, const void* data, size_t len) {
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(len));
  file.close();
  if (!file) {
    throw Failure("cannot write " + path);
  }
}

void write_value(const EValue& value, const std::string& path) {
  if (value.isTensor()) {
    write_file(path, value.toTensor().const_data_ptr(), value.toTensor().nbytes());
  } else if (value.isInt()) {
    const int64_t number = value.toInt();
    write_file(path, &number, sizeof(number));
  } else if (value.isDouble()) {
    const double number = value.toDouble();
    write_file(path, &number, sizeof(number));
  } else if (value.isBool()) {
    const bool flag = value.toBool();
    write_file(path, &flag, sizeof(flag));
  } else {
    write_file(path, nullptr, 0);
  }
}

} // namespace etwgpu::runner
