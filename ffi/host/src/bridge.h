#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/extension/module/module.h>

#include "rust/cxx.h"

namespace etwgpu::host {

struct RawOption;
struct RawValue;
struct RawInfo;
struct RawStep;

/// ETDump's tracer, which also keeps what delegates record until it is taken.
class Tracer final : public executorch::etdump::ETDumpGen {
 public:
  void log_profiling_delegate(
      const char* name,
      executorch::runtime::DelegateDebugIntId id,
      et_timestamp_t start,
      et_timestamp_t end,
      const void* metadata,
      size_t metadata_len) override;

  rust::Vec<RawStep> steps;
};

/// ExecuTorch's Module with its tracer. Functions return ExecuTorch's error number, 0 for success.
class Host {
 public:
  Host(const std::string& program, const std::vector<std::string>& data_files, bool traced);

  uint32_t load(rust::Slice<const RawOption> options);
  uint32_t load_method(rust::Str method);
  uint32_t method_names(rust::Vec<rust::String>& out);
  uint32_t inputs(rust::Str method, rust::Vec<RawInfo>& out);
  uint32_t outputs(rust::Str method, rust::Vec<RawInfo>& out);

  /// `nanoseconds` is what Module takes, without the copies of this bridge.
  uint32_t execute(
      rust::Str method,
      rust::Slice<const RawValue> inputs,
      rust::Vec<RawValue>& out,
      uint64_t& nanoseconds);

  /// The steps that delegates recorded since they were last taken; none when nothing is traced.
  void take_steps(rust::Vec<RawStep>& out);

  /// The recorded ETDump; empty when nothing is traced.
  rust::Vec<uint8_t> take_trace();

 private:
  Tracer* tracer_;
  executorch::extension::Module module_;
};

std::unique_ptr<Host> open(rust::Str program, rust::Slice<const rust::String> data_files, bool traced);

rust::String error_name(uint32_t code);

} // namespace etwgpu::host
