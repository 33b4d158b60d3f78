#include <random>

#include "executorch_webgpu.h"
#include "fixture.h"
#include "harness.h"

namespace {

using Bytes = std::vector<uint8_t>;

uint32_t load(fixture::Host& host, const Bytes& payload) {
  const EtwgpuInit init = fixture::request(host, payload);
  EtwgpuProgram* program = nullptr;
  const uint32_t status = etwgpu_init(&init, &program);
  CHECK_EQ(status == ETWGPU_OK, program != nullptr);
  CHECK_EQ(host.lent, host.returned);
  if (status != ETWGPU_OK) {
    CHECK(!fixture::last_error().empty());
  }
  etwgpu_destroy(program);
  return status;
}

uint32_t load(const Bytes& payload) {
  fixture::Host host;
  return load(host, payload);
}

/// A key that the model asks for.
std::string some_key() {
  fixture::Host host;
  CHECK_EQ(load(host, fixture::Model::get().payload), static_cast<uint32_t>(ETWGPU_OK));
  return host.keys.at(host.keys.size() / 2);
}

} // namespace

TEST(garbage_is_refused) {
  CHECK_EQ(load(Bytes(1, 0)), static_cast<uint32_t>(ETWGPU_PAYLOAD));
  CHECK_EQ(load(Bytes(29, 0)), static_cast<uint32_t>(ETWGPU_PAYLOAD));
  CHECK_EQ(load(Bytes(4096, 0xFF)), static_cast<uint32_t>(ETWGPU_PAYLOAD));
}

TEST(every_truncation_is_refused) {
  const Bytes& whole = fixture::Model::get().payload;
  for (size_t len = 0; len + 16 < whole.size(); len += len < 64 ? 1 : 97) {
    CHECK_EQ(load(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(len))), static_cast<uint32_t>(ETWGPU_PAYLOAD));
  }
}

TEST(ranges_beyond_the_end_are_refused) {
  for (const size_t field : {10, 14, 18, 22}) {
    Bytes payload = fixture::Model::get().payload;
    for (size_t i = 0; i < 4; ++i) {
      payload[field + i] = 0xFF;
    }
    CHECK_EQ(load(payload), static_cast<uint32_t>(ETWGPU_PAYLOAD));
  }
}

TEST(flipped_bytes_never_crash) {
  std::mt19937 random(7);
  for (int round = 0; round < 150; ++round) {
    Bytes payload = fixture::Model::get().payload;
    const size_t place = random() % payload.size();
    payload[place] ^= static_cast<uint8_t>(1 + random() % 255);
    load(payload);
  }
  CHECK_EQ(load(fixture::Model::get().payload), static_cast<uint32_t>(ETWGPU_OK));
}

TEST(missing_data_is_named) {
  fixture::Host host;
  host.missing_key = some_key();
  CHECK_EQ(load(host, fixture::Model::get().payload), static_cast<uint32_t>(ETWGPU_DATA));
  CHECK(fixture::last_error().find(host.missing_key) != std::string::npos);
}

TEST(short_data_is_named) {
  fixture::Host host;
  host.short_key = some_key();
  CHECK_EQ(load(host, fixture::Model::get().payload), static_cast<uint32_t>(ETWGPU_DATA));
  CHECK(fixture::last_error().find(host.short_key) != std::string::npos);
}

TEST(a_host_without_data_is_an_error) {
  fixture::Host host;
  EtwgpuInit init = fixture::request(host, fixture::Model::get().payload);
  init.host.get_data = nullptr;
  init.host.free_data = nullptr;
  EtwgpuProgram* program = nullptr;
  CHECK(etwgpu_init(&init, &program) != ETWGPU_OK);
  CHECK(program == nullptr);
}

TEST(a_payload_at_an_odd_address_loads) {
  Bytes shifted(1, 0);
  const Bytes& whole = fixture::Model::get().payload;
  shifted.insert(shifted.end(), whole.begin(), whole.end());
  fixture::Host host;
  EtwgpuInit init = fixture::request(host, whole);
  init.payload = shifted.data() + 1;
  EtwgpuProgram* program = nullptr;
  CHECK_EQ(etwgpu_init(&init, &program), static_cast<uint32_t>(ETWGPU_OK));
  etwgpu_destroy(program);
}
