#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/extension/module/module.h>

#include "executorch_webgpu.h"
#include "expect.h"
#include "flags.h"
#include "print.h"
#include "values.h"

namespace etwgpu::runner {
namespace {

using executorch::etdump::ETDumpGen;
using executorch::extension::Module;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void check(Error error, const std::string& doing) {
  if (error != Error::Ok) {
    throw Failure(
        "cannot " + doing + ": " + executorch::runtime::to_string(error) + " (" +
        std::to_string(static_cast<uint32_t>(error)) + "); the log above says why");
  }
}

void load(Module& module, Flags& flags) {
  executorch::runtime::LoadBackendOptionsMap options;
  check(options.set_options("VulkanBackend", {flags.specs.data(), flags.specs.size()}), "pass the runtime specs");
  check(module.load(options), "load " + flags.model_path);
  check(module.load_method(flags.method_name), "load method " + flags.method_name);
}

std::vector<EValue> execute(Module& module, const Flags& flags, const Inputs& inputs, std::vector<double>& times) {
  std::vector<EValue> outputs;
  for (uint32_t i = 0; i < flags.num_executions; ++i) {
    const auto start = Clock::now();
    auto result = module.execute(flags.method_name, inputs.values);
    check(result.error(), "execute method " + flags.method_name);
    times.push_back(milliseconds_since(start));
    outputs = std::move(*result);
  }
  return outputs;
}

void print_times(double load_ms, std::vector<double> times) {
  std::printf("load: %.3f ms\nfirst call: %.3f ms\n", load_ms, times.front());
  if (times.size() > 1) {
    times.erase(times.begin());
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    std::printf("median call: %.3f ms (of %zu after the first)\n", times[times.size() / 2], times.size());
  }
  EtwgpuMemory memory{};
  if (etwgpu_memory(&memory) == ETWGPU_OK) {
    std::printf("device memory, peak: %.1f MiB\n", static_cast<double>(memory.peak) / (1024.0 * 1024.0));
  }
}

void write_etdump(ETDumpGen& tracer, const std::string& path) {
  const auto dump = tracer.get_etdump_data();
  if (dump.buf == nullptr) {
    throw Failure("cannot write " + path + ": the tracer recorded nothing");
  }
  const std::unique_ptr<void, decltype(&std::free)> owner(dump.buf, std::free);
  write_file(path, dump.buf, dump.size);
}

void run(Flags& flags) {
  auto tracer = flags.etdump_path.empty() ? nullptr : std::make_unique<ETDumpGen>();
  ETDumpGen* const recorded = tracer.get();
  const std::vector<std::string> data =
      flags.data_path.empty() ? std::vector<std::string>{} : std::vector<std::string>{flags.data_path};
  Module module(flags.model_path, data, Module::LoadMode::Mmap, std::move(tracer));

  const auto start = Clock::now();
  load(module, flags);
  const double load_ms = milliseconds_since(start);

  const auto meta = module.method_meta(flags.method_name);
  check(meta.error(), "describe method " + flags.method_name);
  const Inputs inputs = make_inputs(*meta, flags);
  std::vector<double> times;
  const auto outputs = execute(module, flags, inputs, times);

  for (size_t i = 0; i < outputs.size(); ++i) {
    if (flags.print_output) {
      std::cout << "output " << i << ": ";
      print_value(std::cout, outputs[i]);
    }
    if (!flags.output_file.empty()) {
      write_value(outputs[i], flags.output_file + "-" + std::to_string(i) + ".bin");
    }
  }
  if (recorded != nullptr) {
    write_etdump(*recorded, flags.etdump_path);
  }
  std::cout.flush();
  print_times(load_ms, times);
  compare_outputs(outputs, flags);
}

} // namespace
} // namespace etwgpu::runner

int main(int argc, char** argv) {
  using namespace etwgpu::runner;
  try {
    auto flags = parse_flags(argc, argv);
    if (!flags) {
      std::fputs(kUsage, stdout);
      return 0;
    }
    run(*flags);
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "etwgpu_runner: %s\n", failure.what());
    return 1;
  }
}
