#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/runtime/executor/program.h>

#include "executorch_webgpu.h"

namespace fixture {

/// The test model: its file, its delegate payload and its named data.
class Model {
 public:
  static const Model& get();

  std::vector<uint8_t> payload;
  const executorch::runtime::NamedDataMap* data = nullptr;
  size_t vocabulary = 0;
  size_t longest = 0;

 private:
  Model();
  std::unique_ptr<executorch::extension::FileDataLoader> loader_;
  std::unique_ptr<executorch::runtime::Program> program_;
};

/// A host made for tests: lends the model's data, keeps the output, and fails where it is told to.
struct Host {
  std::string missing_key;
  std::string short_key;
  bool resize_fails = false;
  int lent = 0;
  int returned = 0;
  std::vector<std::string> keys;
  std::vector<uint32_t> output_dims;
  std::vector<uint8_t> output;
  std::vector<std::pair<uint64_t, uint64_t>> steps;

  EtwgpuHost table(bool profiled = false);
};

/// Sentence of the calling thread's last failure.
std::string last_error();

/// A request for `payload` with the model's data.
EtwgpuInit request(Host& host, const std::vector<uint8_t>& payload);

struct Destroy {
  void operator()(EtwgpuProgram* program) const {
    etwgpu_destroy(program);
  }
};
using Program = std::unique_ptr<EtwgpuProgram, Destroy>;

/// Loads the model; throws with the sentence when that fails.
Program load();

/// Arguments of one call: tokens [1, S], position [1] and the output.
struct Arguments {
  Arguments(std::vector<int64_t> tokens, int64_t position);

  std::vector<int64_t> tokens;
  int64_t position;
  int32_t token_dims[2];
  int32_t position_dims[1] = {1};
  int32_t output_dims[2];
  uint8_t order_1[1] = {0};
  uint8_t order_2[2] = {0, 1};
  EtwgpuArg args[3];
};

/// Runs one call and returns its output bytes; throws with the sentence when that fails.
std::vector<uint8_t> run(EtwgpuProgram* program, Arguments& arguments);

} // namespace fixture
