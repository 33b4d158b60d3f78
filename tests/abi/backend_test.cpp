#include <cstring>
#include <stdexcept>

#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/backend/interface.h>

#include "fixture.h"
#include "harness.h"
#include "log_capture.h"

namespace {

using executorch::aten::ScalarType;
using executorch::extension::make_tensor_ptr;
using executorch::runtime::BackendExecutionContext;
using executorch::runtime::BackendInitContext;
using executorch::runtime::BackendInterface;
using executorch::runtime::BackendOption;
using executorch::runtime::CompileSpec;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::FreeableBuffer;
using fixture::Model;
using Handle = executorch::runtime::Result<void*>;

const BackendInterface& backend() {
  return *executorch::runtime::get_backend_class("VulkanBackend");
}

Handle init(FreeableBuffer* payload, std::vector<BackendOption> options = {}) {
  BackendInitContext context(nullptr, nullptr, "forward", Model::get().data, {options.data(), options.size()});
  return backend().init(context, payload, {});
}

FreeableBuffer payload_buffer() {
  const auto& payload = Model::get().payload;
  return FreeableBuffer(payload.data(), payload.size(), nullptr);
}

/// Loads the model and frees `payload`; throws when that fails.
void* load(FreeableBuffer& payload) {
  const auto handle = init(&payload);
  if (!handle.ok()) {
    throw std::runtime_error("cannot load the model: " + fixture::last_error());
  }
  return *handle;
}

/// A loaded handle and EValues that fit it.
struct Loaded {
  Loaded() {
    FreeableBuffer payload = payload_buffer();
    handle = load(payload);
  }
  ~Loaded() {
    backend().destroy(handle);
  }

  Error execute(std::vector<EValue*> args) const {
    BackendExecutionContext context(nullptr, nullptr, "forward");
    return backend().execute(context, handle, {args.data(), args.size()});
  }

  void check_refused(EValue* first) {
    CHECK_EQ(execute({first, &position, &output}), Error::InvalidArgument);
    CHECK_EQ(execute({&tokens, &position, &output}), Error::Ok);
  }

  void* handle = nullptr;
  executorch::extension::TensorPtr tokens_tensor = make_tensor_ptr({1, 3}, std::vector<int64_t>{3, 1, 4});
  executorch::extension::TensorPtr position_tensor = make_tensor_ptr({1}, std::vector<int64_t>{0});
  executorch::extension::TensorPtr output_tensor =
      make_tensor_ptr({1, static_cast<int32_t>(Model::get().vocabulary)}, std::vector<float>(Model::get().vocabulary));
  EValue tokens{*tokens_tensor};
  EValue position{*position_tensor};
  EValue output{*output_tensor};
};

} // namespace

TEST(the_payload_is_freed_after_success_only) {
  log_capture::start();
  FreeableBuffer payload = payload_buffer();
  backend().destroy(load(payload));
  CHECK_EQ(payload.size(), size_t{0});

  std::vector<uint8_t> garbage(100, 0xAB);
  FreeableBuffer bad(garbage.data(), garbage.size(), nullptr);
  CHECK_EQ(init(&bad).error(), Error::DelegateInvalidCompatibility);
  CHECK_EQ(bad.size(), garbage.size());
}

TEST(init_refuses_a_payload_that_is_null_or_freed) {
  CHECK_EQ(init(nullptr).error(), Error::InvalidArgument);
  FreeableBuffer freed = payload_buffer();
  freed.Free();
  CHECK(!init(&freed).ok());
}

TEST(init_without_a_data_map_is_an_error) {
  FreeableBuffer payload = payload_buffer();
  BackendInitContext context(nullptr);
  CHECK_EQ(backend().init(context, &payload, {}).error(), Error::DelegateInvalidCompatibility);
}

TEST(an_option_without_an_end_is_refused) {
  BackendOption option;
  std::memset(option.key, 'k', sizeof(option.key));
  option.value = 1;
  FreeableBuffer payload = payload_buffer();
  CHECK_EQ(init(&payload, {option}).error(), Error::InvalidArgument);

  BackendOption text;
  std::strcpy(text.key, "adapter");
  std::array<char, executorch::runtime::kMaxOptionValueLength> full;
  full.fill('a');
  text.value = full;
  CHECK_EQ(init(&payload, {text}).error(), Error::InvalidArgument);
}

TEST(a_malformed_compile_spec_is_refused) {
  FreeableBuffer payload = payload_buffer();
  BackendInitContext context(nullptr, nullptr, "forward", Model::get().data);
  uint8_t bytes[2] = {1, 1};
  const CompileSpec two_bytes{"webgpu_record_q4gsw_decode_route", {bytes, sizeof(bytes)}};
  const auto handle = backend().init(context, &payload, {&two_bytes, 1});
  CHECK(!handle.ok());
  CHECK(log_capture::error_says("webgpu_record_q4gsw_decode_route"));
}

TEST(destroy_of_null_does_nothing) {
  backend().destroy(nullptr);
}

TEST(execute_refuses_a_null_handle) {
  BackendExecutionContext context;
  CHECK_EQ(backend().execute(context, nullptr, {}), Error::DelegateInvalidHandle);
}

TEST(wrong_counts_are_invalid_arguments) {
  Loaded loaded;
  CHECK_EQ(loaded.execute({}), Error::InvalidArgument);
  CHECK_EQ(loaded.execute({&loaded.tokens, &loaded.position}), Error::InvalidArgument);
  CHECK_EQ(
      loaded.execute({&loaded.tokens, &loaded.position, &loaded.output, &loaded.output}), Error::InvalidArgument);
  CHECK_EQ(loaded.execute({&loaded.tokens, &loaded.position, &loaded.output}), Error::Ok);
}

TEST(values_that_are_no_tensors_are_invalid_arguments) {
  Loaded loaded;
  EValue none;
  EValue number(int64_t{7});
  EValue flag(true);
  EValue real(0.5);
  bool flags[1] = {true};
  executorch::aten::ArrayRef<bool> list(flags, 1);
  EValue many(&list);
  for (EValue* value : {&none, &number, &flag, &real, &many}) {
    loaded.check_refused(value);
  }
  loaded.check_refused(nullptr);
  CHECK_EQ(loaded.execute({&loaded.tokens, &loaded.position, &none}), Error::InvalidArgument);
  CHECK_EQ(loaded.execute({&loaded.tokens, &loaded.position, nullptr}), Error::InvalidArgument);
}

TEST(an_output_that_cannot_hold_the_result_is_an_error) {
  Loaded loaded;
  const auto small = make_tensor_ptr({1, 4}, std::vector<float>(4));
  EValue output(*small);
  CHECK(loaded.execute({&loaded.tokens, &loaded.position, &output}) != Error::Ok);
  const auto flat = make_tensor_ptr({4}, std::vector<float>(4));
  EValue rank(*flat);
  CHECK(loaded.execute({&loaded.tokens, &loaded.position, &rank}) != Error::Ok);
  CHECK_EQ(loaded.execute({&loaded.tokens, &loaded.position, &loaded.output}), Error::Ok);
}

TEST(an_output_without_memory_is_an_error) {
  Loaded loaded;
  const auto empty =
      make_tensor_ptr({1, static_cast<int32_t>(Model::get().vocabulary)}, static_cast<void*>(nullptr), ScalarType::Float);
  EValue output(*empty);
  CHECK_EQ(loaded.execute({&loaded.tokens, &loaded.position, &output}), Error::InvalidArgument);
  CHECK_EQ(loaded.execute({&loaded.tokens, &loaded.position, &loaded.output}), Error::Ok);
}
