#include "convert.h"

#include <algorithm>
#include <cstring>

namespace etwgpu::host {
namespace {

using executorch::aten::ScalarType;
using executorch::runtime::BackendOption;
using executorch::runtime::EValue;
using executorch::runtime::Tag;

void copy_text(const rust::String& text, char* out, size_t cap) {
  std::memcpy(out, text.data(), std::min(text.size(), cap - 1));
}

ValueTag to_tag(Tag tag) {
  switch (tag) {
    case Tag::None:
      return ValueTag::None;
    case Tag::Tensor:
      return ValueTag::Tensor;
    case Tag::Int:
      return ValueTag::Int;
    case Tag::Double:
      return ValueTag::Double;
    case Tag::Bool:
      return ValueTag::Bool;
    default:
      return ValueTag::Other;
  }
}

template <typename Range>
rust::Vec<int32_t> to_sizes(const Range& sizes) {
  rust::Vec<int32_t> copy;
  copy.reserve(sizes.size());
  for (const int32_t size : sizes) {
    copy.push_back(size);
  }
  return copy;
}

RawValue empty_value(ValueTag tag) {
  return RawValue{tag, 0, 0.0, 0, {}, {}};
}

} // namespace

BackendOption to_option(const RawOption& option) {
  BackendOption out;
  copy_text(option.key, out.key, sizeof(out.key));
  if (option.kind == OptionKind::Bool) {
    out.value = option.number != 0;
  } else if (option.kind == OptionKind::Int) {
    out.value = option.number;
  } else {
    std::array<char, executorch::runtime::kMaxOptionValueLength> text{};
    copy_text(option.text, text.data(), text.size());
    out.value = text;
  }
  return out;
}

Arguments::Arguments(rust::Slice<const RawValue> raw) {
  for (const RawValue& value : raw) {
    switch (value.tag) {
      case ValueTag::Tensor: {
        std::vector<int32_t> sizes(value.sizes.begin(), value.sizes.end());
        void* bytes = const_cast<uint8_t*>(value.bytes.data());
        tensors.push_back(executorch::extension::make_tensor_ptr(
            std::move(sizes), bytes, static_cast<ScalarType>(value.scalar_type)));
        values.emplace_back(*tensors.back());
        break;
      }
      case ValueTag::Int:
        values.emplace_back(value.integer);
        break;
      case ValueTag::Double:
        values.emplace_back(value.real);
        break;
      case ValueTag::Bool:
        values.emplace_back(value.integer != 0);
        break;
      default:
        values.emplace_back();
        break;
    }
  }
}

RawValue to_raw(const EValue& value) {
  RawValue raw = empty_value(to_tag(value.tag));
  if (value.isTensor()) {
    const auto& tensor = value.toTensor();
    raw.scalar_type = static_cast<int32_t>(tensor.scalar_type());
    raw.sizes = to_sizes(tensor.sizes());
    if (const auto* bytes = static_cast<const uint8_t*>(tensor.const_data_ptr())) {
      append(raw.bytes, {bytes, tensor.nbytes()});
    }
  } else if (value.isInt()) {
    raw.integer = value.toInt();
  } else if (value.isBool()) {
    raw.integer = value.toBool() ? 1 : 0;
  } else if (value.isDouble()) {
    raw.real = value.toDouble();
  }
  return raw;
}

RawInfo to_info(Tag tag, const executorch::runtime::Result<executorch::runtime::TensorInfo>& tensor) {
  RawInfo info{to_tag(tag), 0, {}};
  if (tag == Tag::Tensor && tensor.ok()) {
    info.scalar_type = static_cast<int32_t>(tensor->scalar_type());
    info.sizes = to_sizes(tensor->sizes());
  }
  return info;
}

} // namespace etwgpu::host
