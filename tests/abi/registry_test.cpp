#include <dlfcn.h>

#include <cstring>
#include <filesystem>

#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/backend/interface.h>

#include "fixture.h"
#include "harness.h"
#include "log_capture.h"

namespace {

using executorch::extension::make_tensor_ptr;
using executorch::extension::Module;
using executorch::runtime::BackendOption;
using executorch::runtime::BackendOptions;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using Tokens = std::vector<int64_t>;

Error run(Module& module, const Tokens& ids, int64_t position, std::vector<float>& logits) {
  const auto tokens = make_tensor_ptr({1, static_cast<int32_t>(ids.size())}, ids);
  const auto at = make_tensor_ptr({1}, Tokens{position});
  const auto outputs = module.forward({EValue(*tokens), EValue(*at)});
  if (!outputs.ok()) {
    return outputs.error();
  }
  const auto& tensor = outputs->at(0).toTensor();
  logits.assign(tensor.const_data_ptr<float>(), tensor.const_data_ptr<float>() + tensor.numel());
  return Error::Ok;
}

template <size_t N>
Error load(Module& module, BackendOptions<N>& options) {
  executorch::runtime::LoadBackendOptionsMap map;
  CHECK_EQ(map.set_options("VulkanBackend", options.view()), Error::Ok);
  CHECK_EQ(module.load(map), Error::Ok);
  return module.load_forward();
}

class CountingTracer final : public executorch::etdump::ETDumpGen {
 public:
  explicit CountingTracer(int& count) : count_(count) {}

  void log_profiling_delegate(
      const char* name,
      executorch::runtime::DelegateDebugIntId id,
      et_timestamp_t start,
      et_timestamp_t end,
      const void* metadata,
      size_t metadata_len) override {
    CHECK(name != nullptr && name[0] != '\0');
    CHECK(start <= end);
    ++count_;
    ETDumpGen::log_profiling_delegate(name, id, start, end, metadata, metadata_len);
  }

 private:
  int& count_;
};

} // namespace

TEST(the_plug_in_registers_itself) {
  const auto* backend = executorch::runtime::get_backend_class("VulkanBackend");
  CHECK(backend != nullptr);
  CHECK(backend->is_available());
}

TEST(a_program_runs_and_repeats) {
  Module module(harness::model_path());
  std::vector<float> first;
  std::vector<float> again;
  CHECK_EQ(run(module, {3, 1, 4, 1, 5}, 0, first), Error::Ok);
  CHECK_EQ(run(module, {3, 1, 4, 1, 5}, 0, again), Error::Ok);
  CHECK_EQ(first.size(), fixture::Model::get().vocabulary);
  CHECK(first == again);
}

TEST(a_second_copy_says_so_and_changes_nothing) {
  log_capture::start();
  const auto copy = std::filesystem::temp_directory_path() / "libexecutorch_backend_webgpu_second_copy.so";
  std::filesystem::copy_file(harness::plugin_path(), copy, std::filesystem::copy_options::overwrite_existing);
  const auto* const before = executorch::runtime::get_backend_class("VulkanBackend");
  const size_t count = executorch::runtime::get_num_registered_backends();
  log_capture::clear();
  CHECK(dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr);
  std::filesystem::remove(copy);
  CHECK(log_capture::error_says("cannot register VulkanBackend"));
  CHECK_EQ(executorch::runtime::get_num_registered_backends(), count);
  CHECK(executorch::runtime::get_backend_class("VulkanBackend") == before);
  Module module(harness::model_path());
  std::vector<float> logits;
  CHECK_EQ(run(module, {3}, 0, logits), Error::Ok);
}

TEST(the_same_file_twice_is_one_registration) {
  log_capture::clear();
  CHECK(dlopen(harness::plugin_path().c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr);
  CHECK(!log_capture::error_says("cannot register"));
}

TEST(all_runtime_specs_of_a_load_arrive) {
  Module module(harness::model_path());
  BackendOptions<3> options;
  CHECK_EQ(options.set_option("enable_f16_kv_cache", false), Error::Ok);
  CHECK_EQ(options.set_option("sdpa_query_tile", 32), Error::Ok);
  CHECK_EQ(options.set_option("enable_f16_accumulate_gemm", false), Error::Ok);
  CHECK_EQ(load(module, options), Error::Ok);
}

TEST(a_runtime_spec_of_a_wrong_type_is_an_invalid_argument) {
  log_capture::clear();
  Module module(harness::model_path());
  BackendOptions<2> options;
  CHECK_EQ(options.set_option("enable_f16_kv_cache", false), Error::Ok);
  CHECK_EQ(options.set_option("sdpa_query_tile", true), Error::Ok);
  CHECK_EQ(load(module, options), Error::InvalidArgument);
  CHECK(log_capture::error_says("sdpa_query_tile"));
  CHECK(log_capture::longest_line() < 256);
}

TEST(process_wide_options_are_typed) {
  log_capture::clear();
  BackendOption option;
  std::strcpy(option.key, "sdpa_query_tile");
  option.value = true;
  CHECK_EQ(executorch::runtime::set_option("VulkanBackend", {&option, 1}), Error::InvalidArgument);
  CHECK(log_capture::error_says("sdpa_query_tile"));
  option.value = 32;
  CHECK_EQ(executorch::runtime::set_option("VulkanBackend", {&option, 1}), Error::Ok);
  option.value = false;
  CHECK_EQ(executorch::runtime::get_option("VulkanBackend", {&option, 1}), Error::Ok);
  CHECK(std::holds_alternative<int>(option.value) && std::get<int>(option.value) == 32);
  option.value = 0;
  CHECK_EQ(executorch::runtime::set_option("VulkanBackend", {&option, 1}), Error::Ok);
}

TEST(a_position_beyond_the_cache_is_an_invalid_argument) {
  Module module(harness::model_path());
  std::vector<float> expected;
  std::vector<float> logits;
  CHECK_EQ(run(module, {3, 1, 4}, 0, expected), Error::Ok);
  log_capture::clear();
  CHECK_EQ(run(module, {3}, int64_t{1} << 20, logits), Error::InvalidArgument);
  CHECK(log_capture::error_says("1048576"));
  CHECK_EQ(run(module, {3, 1, 4}, 0, logits), Error::Ok);
  CHECK(logits == expected);
}

TEST(a_tracer_receives_delegate_events) {
  int count = 0;
  Module module(harness::model_path(), Module::LoadMode::File, std::make_unique<CountingTracer>(count));
  std::vector<float> traced;
  CHECK_EQ(run(module, {3, 1, 4, 1, 5}, 0, traced), Error::Ok);
  CHECK(count > 0);
  Module plain(harness::model_path());
  std::vector<float> logits;
  CHECK_EQ(run(plain, {3, 1, 4, 1, 5}, 0, logits), Error::Ok);
  CHECK(logits == traced);
}
