#include <cstring>
#include <thread>

#include "executorch_webgpu.h"
#include "fixture.h"
#include "harness.h"

TEST(version_is_that_of_the_header) {
  CHECK_EQ(etwgpu_abi_version(), static_cast<uint32_t>(ETWGPU_ABI_VERSION));
}

TEST(a_device_is_available) {
  CHECK(etwgpu_is_available());
}

TEST(last_error_is_cut_and_terminated) {
  CHECK(etwgpu_set_option(nullptr) != ETWGPU_OK);
  const std::string whole = fixture::last_error();
  CHECK(whole.size() > 8);
  char text[8];
  std::memset(text, 'x', sizeof(text));
  CHECK_EQ(etwgpu_last_error(text, sizeof(text)), whole.size());
  CHECK_EQ(std::string(text), whole.substr(0, sizeof(text) - 1));
  char none = 'x';
  CHECK_EQ(etwgpu_last_error(&none, 0), whole.size());
  CHECK_EQ(none, 'x');
}

TEST(last_error_belongs_to_its_thread) {
  CHECK(etwgpu_set_option(nullptr) != ETWGPU_OK);
  size_t other = 1;
  std::thread([&] { other = etwgpu_last_error(nullptr, 0); }).join();
  CHECK_EQ(other, size_t{0});
  CHECK(etwgpu_last_error(nullptr, 0) > 0);
}

TEST(init_refuses_null_pointers) {
  fixture::Host host;
  EtwgpuInit init = fixture::request(host, fixture::Model::get().payload);
  auto* const untouched = reinterpret_cast<EtwgpuProgram*>(uintptr_t{16});
  EtwgpuProgram* program = untouched;
  CHECK(etwgpu_init(nullptr, &program) != ETWGPU_OK);
  CHECK(etwgpu_init(&init, nullptr) != ETWGPU_OK);
  init.payload = nullptr;
  CHECK(etwgpu_init(&init, &program) != ETWGPU_OK);
  CHECK(program == untouched);
}

TEST(init_refuses_arrays_that_are_null_but_not_empty) {
  fixture::Host host;
  EtwgpuProgram* program = nullptr;
  EtwgpuInit init = fixture::request(host, fixture::Model::get().payload);
  init.specs_len = 1;
  CHECK(etwgpu_init(&init, &program) != ETWGPU_OK);
  init = fixture::request(host, fixture::Model::get().payload);
  init.options_len = 1;
  CHECK(etwgpu_init(&init, &program) != ETWGPU_OK);
  CHECK(program == nullptr);
}

TEST(destroy_of_null_does_nothing) {
  etwgpu_destroy(nullptr);
}

TEST(queries_refuse_null_pointers) {
  EtwgpuMemory memory{};
  CHECK(etwgpu_memory(nullptr) != ETWGPU_OK);
  CHECK(etwgpu_program_memory(nullptr, &memory) != ETWGPU_OK);
  CHECK_EQ(etwgpu_program_plan(nullptr, nullptr, 0), size_t{0});
  const auto program = fixture::load();
  CHECK(etwgpu_program_memory(program.get(), nullptr) != ETWGPU_OK);
}

TEST(memory_counts_the_loaded_program_and_forgets_it) {
  EtwgpuMemory before{};
  CHECK_EQ(etwgpu_memory(&before), static_cast<uint32_t>(ETWGPU_OK));
  {
    const auto program = fixture::load();
    EtwgpuMemory own{};
    EtwgpuMemory all{};
    CHECK_EQ(etwgpu_program_memory(program.get(), &own), static_cast<uint32_t>(ETWGPU_OK));
    CHECK_EQ(etwgpu_memory(&all), static_cast<uint32_t>(ETWGPU_OK));
    CHECK(own.weights > 0);
    CHECK(own.caches > 0);
    CHECK(own.peak >= own.weights + own.caches);
    CHECK_EQ(all.weights, before.weights + own.weights);
    CHECK(all.peak >= own.weights + own.caches);
  }
  EtwgpuMemory after{};
  CHECK_EQ(etwgpu_memory(&after), static_cast<uint32_t>(ETWGPU_OK));
  CHECK_EQ(after.weights, before.weights);
  CHECK_EQ(after.caches, before.caches);
  CHECK_EQ(after.activations, before.activations);
}

TEST(plan_is_text_that_can_be_cut) {
  const auto program = fixture::load();
  const size_t len = etwgpu_program_plan(program.get(), nullptr, 0);
  CHECK(len > 16);
  char text[16];
  CHECK_EQ(etwgpu_program_plan(program.get(), text, sizeof(text)), len);
  CHECK_EQ(std::strlen(text), sizeof(text) - 1);
}
