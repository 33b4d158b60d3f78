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

/// ExecuTorch's Module with its tracer. Functions return ExecuTorch's error number, 0 for success.
class Host {
 public:
  Host(const std::string& program, const std::vector<std::string>& data_files, bool traced);

  uint32_t load(rust::Slice<const RawOption> options);
  uint32_t load_method(rust::Str method);
  uint32_t method_names(rust::Vec<rust::String>& out);
  uint32_t inputs(rust::Str method, rust::Vec<RawInfo>& out);
  uint32_t outputs(rust::Str method, rust::Vec<RawInfo>& out);
  uint32_t execute(rust::Str method, rust::Slice<const RawValue> inputs, rust::Vec<RawValue>& out);

  /// The recorded ETDump; empty when nothing is traced.
  rust::Vec<uint8_t> take_trace();

 private:
  executorch::etdump::ETDumpGen* tracer_;
  executorch::extension::Module module_;
};

std::unique_ptr<Host> open(rust::Str program, rust::Slice<const rust::String> data_files, bool traced);

rust::String error_name(uint32_t code);

} // namespace etwgpu::host
