#include "etwgpu-host/src/bridge.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "convert.h"

namespace etwgpu::host {
namespace {

using executorch::extension::Module;
using executorch::runtime::BackendOption;
using executorch::runtime::Error;

constexpr const char* kBackend = "VulkanBackend";

constexpr uint32_t code(Error error) {
  return static_cast<uint32_t>(error);
}

std::string to_string(rust::Str text) {
  return std::string(text.data(), text.size());
}

} // namespace

void Tracer::log_profiling_delegate(
    const char* name,
    executorch::runtime::DelegateDebugIntId id,
    et_timestamp_t start,
    et_timestamp_t end,
    const void* metadata,
    size_t metadata_len) {
  steps.push_back({rust::String::lossy(name == nullptr ? "" : name), start, end});
  ETDumpGen::log_profiling_delegate(name, id, start, end, metadata, metadata_len);
}

Host::Host(const std::string& program, const std::vector<std::string>& data_files, bool traced)
    : tracer_(traced ? new Tracer() : nullptr),
      module_(program, data_files, Module::LoadMode::Mmap, std::unique_ptr<Tracer>(tracer_)) {}

uint32_t Host::load(rust::Slice<const RawOption> options) {
  std::vector<BackendOption> converted;
  for (const RawOption& option : options) {
    converted.push_back(to_option(option));
  }
  executorch::runtime::LoadBackendOptionsMap map;
  const Error error = map.set_options(kBackend, {converted.data(), converted.size()});
  return code(error == Error::Ok ? module_.load(map) : error);
}

uint32_t Host::load_method(rust::Str method) {
  return code(module_.load_method(to_string(method)));
}

uint32_t Host::method_names(rust::Vec<rust::String>& out) {
  const auto names = module_.method_names();
  if (!names.ok()) {
    return code(names.error());
  }
  std::vector<std::string> sorted(names->begin(), names->end());
  std::sort(sorted.begin(), sorted.end());
  for (const std::string& name : sorted) {
    out.push_back(rust::String::lossy(name));
  }
  return code(Error::Ok);
}

uint32_t Host::inputs(rust::Str method, rust::Vec<RawInfo>& out) {
  const auto meta = module_.method_meta(to_string(method));
  if (!meta.ok()) {
    return code(meta.error());
  }
  for (size_t i = 0; i < meta->num_inputs(); ++i) {
    const auto tag = meta->input_tag(i);
    if (!tag.ok()) {
      return code(tag.error());
    }
    out.push_back(to_info(*tag, meta->input_tensor_meta(i)));
  }
  return code(Error::Ok);
}

uint32_t Host::outputs(rust::Str method, rust::Vec<RawInfo>& out) {
  const auto meta = module_.method_meta(to_string(method));
  if (!meta.ok()) {
    return code(meta.error());
  }
  for (size_t i = 0; i < meta->num_outputs(); ++i) {
    const auto tag = meta->output_tag(i);
    if (!tag.ok()) {
      return code(tag.error());
    }
    out.push_back(to_info(*tag, meta->output_tensor_meta(i)));
  }
  return code(Error::Ok);
}

uint32_t Host::execute(
    rust::Str method,
    rust::Slice<const RawValue> inputs,
    rust::Vec<RawValue>& out,
    uint64_t& nanoseconds) {
  using Clock = std::chrono::steady_clock;
  const Arguments arguments(inputs);
  const std::string name = to_string(method);
  const Clock::time_point start = Clock::now();
  const auto outputs = module_.execute(name, arguments.values);
  nanoseconds = std::chrono::nanoseconds(Clock::now() - start).count();
  if (!outputs.ok()) {
    return code(outputs.error());
  }
  for (const auto& value : *outputs) {
    out.push_back(to_raw(value));
  }
  return code(Error::Ok);
}

rust::Vec<uint8_t> Host::take_trace() {
  rust::Vec<uint8_t> bytes;
  if (tracer_ == nullptr) {
    return bytes;
  }
  const auto dump = tracer_->get_etdump_data();
  const std::unique_ptr<void, decltype(&std::free)> owner(dump.buf, std::free);
  append(bytes, {static_cast<const uint8_t*>(dump.buf), dump.size});
  return bytes;
}

void Host::take_steps(rust::Vec<RawStep>& out) {
  if (tracer_ != nullptr) {
    out = std::exchange(tracer_->steps, {});
  }
}

std::unique_ptr<Host> open(rust::Str program, rust::Slice<const rust::String> data_files, bool traced) {
  std::vector<std::string> files;
  for (const rust::String& file : data_files) {
    files.emplace_back(file);
  }
  return std::make_unique<Host>(to_string(program), files, traced);
}

rust::String error_name(uint32_t number) {
  return executorch::runtime::to_string(static_cast<Error>(number));
}

} // namespace etwgpu::host
