#include <array>

#include "executorch_webgpu.h"
#include "fixture.h"
#include "harness.h"

namespace {

EtwgpuOption option(const char* key, uint32_t kind, int64_t number, const char* text = nullptr) {
  return {key, kind, number, text};
}

bool says(const char* word) {
  return fixture::last_error().find(word) != std::string::npos;
}

uint32_t load_with(const EtwgpuOption& chosen) {
  fixture::Host host;
  EtwgpuInit init = fixture::request(host, fixture::Model::get().payload);
  init.options = &chosen;
  init.options_len = 1;
  EtwgpuProgram* program = nullptr;
  const uint32_t status = etwgpu_init(&init, &program);
  CHECK_EQ(status == ETWGPU_OK, program != nullptr);
  etwgpu_destroy(program);
  return status;
}

uint32_t load_with_spec(const uint8_t* data, size_t len) {
  const EtwgpuSpec spec{"webgpu_record_q4gsw_decode_route", data, len};
  fixture::Host host;
  EtwgpuInit init = fixture::request(host, fixture::Model::get().payload);
  init.specs = &spec;
  init.specs_len = 1;
  EtwgpuProgram* program = nullptr;
  const uint32_t status = etwgpu_init(&init, &program);
  etwgpu_destroy(program);
  return status;
}

} // namespace

TEST(a_wrong_type_is_refused_by_name) {
  const auto wrong_bool = option("enable_f16_kv_cache", ETWGPU_OPTION_INT, 1);
  const auto wrong_int = option("sdpa_query_tile", ETWGPU_OPTION_BOOL, 1);
  const auto wrong_text = option("enable_f16_accumulate_gemm", ETWGPU_OPTION_STRING, 0, "yes");
  for (const auto& wrong : {wrong_bool, wrong_int, wrong_text}) {
    CHECK_EQ(etwgpu_set_option(&wrong), static_cast<uint32_t>(ETWGPU_OPTION));
    CHECK(says(wrong.key));
    CHECK_EQ(load_with(wrong), static_cast<uint32_t>(ETWGPU_OPTION));
    CHECK(says(wrong.key));
  }
}

TEST(malformed_options_are_refused) {
  const auto unknown_kind = option("sdpa_query_tile", 77, 1);
  const auto no_key = option(nullptr, ETWGPU_OPTION_INT, 1);
  const auto no_text = option("adapter", ETWGPU_OPTION_STRING, 0, nullptr);
  for (const auto& wrong : {unknown_kind, no_key, no_text}) {
    CHECK(etwgpu_set_option(&wrong) != ETWGPU_OK);
    CHECK(load_with(wrong) != ETWGPU_OK);
    CHECK(!fixture::last_error().empty());
  }
}

TEST(an_unknown_option_is_left_to_others) {
  const auto unknown = option("option_of_another_delegate", ETWGPU_OPTION_INT, 1);
  CHECK_EQ(etwgpu_set_option(&unknown), static_cast<uint32_t>(ETWGPU_OK));
}

TEST(an_option_is_read_back) {
  const auto chosen = option("sdpa_query_tile", ETWGPU_OPTION_INT, 32);
  CHECK_EQ(etwgpu_set_option(&chosen), static_cast<uint32_t>(ETWGPU_OK));
  EtwgpuOption found{};
  std::array<char, 256> text{};
  CHECK_EQ(etwgpu_get_option(chosen.key, &found, text.data(), text.size()), static_cast<uint32_t>(ETWGPU_OK));
  CHECK_EQ(found.kind, static_cast<uint32_t>(ETWGPU_OPTION_INT));
  CHECK_EQ(found.int_value, int64_t{32});
  const auto usual = option("sdpa_query_tile", ETWGPU_OPTION_INT, 0);
  CHECK_EQ(etwgpu_set_option(&usual), static_cast<uint32_t>(ETWGPU_OK));
}

TEST(get_option_refuses_what_it_does_not_know) {
  EtwgpuOption found{};
  std::array<char, 256> text{};
  CHECK_EQ(etwgpu_get_option("no_such_option", &found, text.data(), text.size()), static_cast<uint32_t>(ETWGPU_OPTION));
  CHECK(says("no_such_option"));
  CHECK(etwgpu_get_option(nullptr, &found, text.data(), text.size()) != ETWGPU_OK);
  CHECK(etwgpu_get_option("sdpa_query_tile", nullptr, text.data(), text.size()) != ETWGPU_OK);
}

TEST(an_adapter_that_does_not_exist_is_an_error) {
  const auto nowhere = option("adapter", ETWGPU_OPTION_STRING, 0, "no adapter has this name");
  CHECK(load_with(nowhere) != ETWGPU_OK);
  CHECK(says("no adapter has this name"));
}

TEST(the_decode_route_spec_is_one_byte) {
  const uint8_t bytes[2] = {1, 1};
  CHECK_EQ(load_with_spec(bytes, 1), static_cast<uint32_t>(ETWGPU_OK));
  CHECK(load_with_spec(bytes, 0) != ETWGPU_OK);
  CHECK(load_with_spec(bytes, 2) != ETWGPU_OK);
  CHECK(load_with_spec(nullptr, 1) != ETWGPU_OK);
}
