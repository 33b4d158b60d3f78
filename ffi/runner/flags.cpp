#include "flags.h"

#include <cmath>
#include <charconv>
#include <cstring>
#include <functional>
#include <limits>
#include <map>

namespace etwgpu::runner {
namespace {

using executorch::runtime::BackendOption;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t start = 0;
  for (size_t end = text.find(separator); end != std::string::npos; end = text.find(separator, start)) {
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  parts.push_back(text.substr(start));
  return parts;
}

template <typename T>
std::optional<T> parse_number(const std::string& text) {
  T number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) {
    return std::nullopt;
  }
  return number;
}

Shape parse_shape(const std::string& text) {
  Shape shape;
  if (text.empty()) {
    return shape;
  }
  for (const std::string& size : split(text, ',')) {
    const auto number = parse_number<int32_t>(size);
    if (!number || *number < 0) {
      throw Failure("--input_shapes: found size '" + size + "', expected a non-negative integer");
    }
    shape.push_back(*number);
  }
  return shape;
}

std::vector<Shape> parse_shapes(const std::string& text) {
  std::vector<Shape> shapes;
  for (const std::string& shape : split(text, ';')) {
    shapes.push_back(parse_shape(shape));
  }
  return shapes;
}

BackendOption parse_spec(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Failure("--spec: found '" + text + "', expected key=value");
  }
  const std::string key = text.substr(0, equals);
  const std::string value = text.substr(equals + 1);
  BackendOption option;
  std::array<char, executorch::runtime::kMaxOptionValueLength> characters{};
  if (key.size() >= sizeof(option.key) || value.size() >= characters.size()) {
    throw Failure("--spec " + key + ": expected at most 63 bytes of key and 255 bytes of value");
  }
  std::memcpy(option.key, key.data(), key.size());
  if (value == "true" || value == "false") {
    option.value = value == "true";
  } else if (const auto number = parse_number<int>(value)) {
    option.value = *number;
  } else {
    std::memcpy(characters.data(), value.data(), value.size());
    option.value = characters;
  }
  return option;
}

uint32_t parse_count(const std::string& text) {
  const auto number = parse_number<uint32_t>(text);
  if (!number || *number == 0) {
    throw Failure("--num_executions: found '" + text + "', expected an integer above 0");
  }
  return *number;
}

double parse_tolerance(const std::string& text) {
  const auto number = parse_number<double>(text);
  if (!number || !(*number >= 0) || !std::isfinite(*number)) {
    throw Failure("--tolerance: found '" + text + "', expected a finite number of at least 0");
  }
  return *number;
}

using Setter = std::function<void(Flags&, const std::string&)>;

const std::map<std::string, Setter>& setters() {
  static const std::map<std::string, Setter> table = {
      {"model_path", [](Flags& flags, const std::string& text) { flags.model_path = text; }},
      {"data_path", [](Flags& flags, const std::string& text) { flags.data_path = text; }},
      {"method_name", [](Flags& flags, const std::string& text) { flags.method_name = text; }},
      {"inputs", [](Flags& flags, const std::string& text) { flags.inputs = split(text, ','); }},
      {"input_shapes", [](Flags& flags, const std::string& text) { flags.input_shapes = parse_shapes(text); }},
      {"output_file", [](Flags& flags, const std::string& text) { flags.output_file = text; }},
      {"expect", [](Flags& flags, const std::string& text) { flags.expected = split(text, ','); }},
      {"tolerance", [](Flags& flags, const std::string& text) { flags.tolerance = parse_tolerance(text); }},
      {"num_executions", [](Flags& flags, const std::string& text) { flags.num_executions = parse_count(text); }},
      {"etdump_path", [](Flags& flags, const std::string& text) { flags.etdump_path = text; }},
      {"spec", [](Flags& flags, const std::string& text) { flags.specs.push_back(parse_spec(text)); }},
  };
  return table;
}

bool parse_switch(const std::optional<std::string>& value) {
  if (value && *value != "true" && *value != "false") {
    throw Failure("--print_output: found '" + *value + "', expected true or false");
  }
  return !value || *value == "true";
}

} // namespace

const char* const kUsage =
    R"(etwgpu_runner: runs one method of an ExecuTorch program and times it

  --model_path FILE       the .pte program (required)
  --data_path FILE        a .ptd file with external data
  --method_name NAME      default: forward
  --inputs FILE,FILE      raw little-endian bytes, one file per input; without it every input is zero
  --input_shapes S;S      sizes of the inputs, for example '1,7;1'; without it the sizes in the program (the upper bounds)
  --output_file BASE      writes output i as raw bytes to BASE-i.bin
  --expect FILE,FILE      compares the outputs with raw bytes, one file per output, and fails where they differ by more than
  --tolerance T           this share of the output's largest expected value; default: 0.001
  --print_output          prints the outputs
  --num_executions N      default: 1
  --etdump_path FILE      writes a profile
  --spec KEY=VALUE        a runtime spec of the delegate, repeatable; true and false are bools, integers are ints
  --help
)";

std::optional<Flags> parse_flags(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--help" || word == "-h") {
      return std::nullopt;
    }
    if (word.rfind("--", 0) != 0) {
      throw Failure("found '" + word + "', expected a flag; --help lists the flags");
    }
    const size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    std::optional<std::string> value;
    if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    }
    if (name == "print_output") {
      flags.print_output = parse_switch(value);
      continue;
    }
    const auto setter = setters().find(name);
    if (setter == setters().end()) {
      throw Failure("unknown flag --" + name + "; --help lists the flags");
    }
    if (!value) {
      if (i + 1 == argc) {
        throw Failure("--" + name + ": expected a value");
      }
      value = argv[++i];
    }
    setter->second(flags, *value);
  }
  if (flags.model_path.empty()) {
    throw Failure("--model_path is required; --help lists the flags");
  }
  return flags;
}

} // namespace etwgpu::runner
