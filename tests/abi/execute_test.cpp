#include <cmath>
#include <cstring>
#include <limits>

#include <executorch/runtime/core/portable_type/scalar_type.h>

#include "executorch_webgpu.h"
#include "fixture.h"
#include "harness.h"

namespace {

using fixture::Arguments;
using fixture::Host;
using fixture::Model;

/// One program for all tests of this file, so that each refused call is followed by good ones.
EtwgpuProgram* program() {
  static const fixture::Program loaded = fixture::load();
  return loaded.get();
}

const std::vector<uint8_t>& expected() {
  static const std::vector<uint8_t> output = [] {
    Arguments arguments({3, 1, 4, 1, 5}, 0);
    return fixture::run(program(), arguments);
  }();
  return output;
}

void check_still_works() {
  Arguments arguments({3, 1, 4, 1, 5}, 0);
  CHECK(fixture::run(program(), arguments) == expected());
}

uint32_t execute(const EtwgpuArg* args, size_t len, bool resize_fails = false) {
  Host host;
  host.resize_fails = resize_fails;
  const EtwgpuHost table = host.table();
  return etwgpu_execute(program(), &table, args, len);
}

void check_refused(Arguments& arguments, size_t len = 3) {
  expected();
  CHECK_EQ(execute(arguments.args, len), static_cast<uint32_t>(ETWGPU_SHAPE));
  CHECK(!fixture::last_error().empty());
  check_still_works();
}

} // namespace

TEST(logits_are_finite_and_repeat) {
  CHECK_EQ(expected().size(), Model::get().vocabulary * sizeof(float));
  for (size_t i = 0; i < Model::get().vocabulary; ++i) {
    float logit;
    std::memcpy(&logit, expected().data() + i * sizeof(float), sizeof(float));
    CHECK(std::isfinite(logit));
  }
  check_still_works();
}

TEST(null_pointers_are_refused) {
  Arguments arguments({3, 1, 4, 1, 5}, 0);
  Host host;
  const EtwgpuHost table = host.table();
  CHECK(etwgpu_execute(nullptr, &table, arguments.args, 3) != ETWGPU_OK);
  CHECK(etwgpu_execute(program(), nullptr, arguments.args, 3) != ETWGPU_OK);
  CHECK(etwgpu_execute(program(), &table, nullptr, 3) != ETWGPU_OK);
  check_still_works();
}

TEST(wrong_counts_are_refused) {
  Arguments arguments({3, 1, 4, 1, 5}, 0);
  const EtwgpuArg four[4] = {arguments.args[0], arguments.args[1], arguments.args[2], arguments.args[2]};
  CHECK_EQ(execute(four, 4), static_cast<uint32_t>(ETWGPU_SHAPE));
  for (size_t len = 0; len < 3; ++len) {
    check_refused(arguments, len);
  }
}

TEST(wrong_kinds_are_refused) {
  for (const uint32_t kind : {ETWGPU_ARG_NONE, ETWGPU_ARG_INT, ETWGPU_ARG_DOUBLE, 99}) {
    Arguments arguments({3, 1, 4, 1, 5}, 0);
    arguments.args[0].kind = kind;
    check_refused(arguments);
  }
}

TEST(a_wrong_dtype_is_refused) {
  Arguments arguments({3, 1, 4, 1, 5}, 0);
  arguments.args[0].scalar_type = static_cast<int32_t>(executorch::aten::ScalarType::Double);
  check_refused(arguments);
  Arguments output({3, 1, 4, 1, 5}, 0);
  output.args[2].scalar_type = static_cast<int32_t>(executorch::aten::ScalarType::Long);
  check_refused(output);
}

TEST(missing_bytes_are_refused) {
  Arguments null({3, 1, 4, 1, 5}, 0);
  null.args[0].data = nullptr;
  check_refused(null);
  Arguments cut({3, 1, 4, 1, 5}, 0);
  cut.args[0].len -= sizeof(int64_t);
  check_refused(cut);
  Arguments no_dims({3, 1, 4, 1, 5}, 0);
  no_dims.args[0].dims = nullptr;
  check_refused(no_dims);
}

TEST(wrong_shapes_are_refused) {
  Arguments rank({3, 1, 4, 1, 5}, 0);
  rank.args[0].rank = 1;
  check_refused(rank);
  Arguments batch({3, 1, 4, 1}, 0);
  batch.token_dims[0] = 2;
  batch.token_dims[1] = 2;
  check_refused(batch);
  Arguments negative({3, 1, 4, 1, 5}, 0);
  negative.token_dims[1] = -5;
  check_refused(negative);
  Arguments huge({3, 1, 4, 1, 5}, 0);
  huge.token_dims[1] = std::numeric_limits<int32_t>::max();
  check_refused(huge);
}

TEST(a_permuted_dim_order_is_refused) {
  Arguments arguments({3, 1, 4, 1, 5}, 0);
  uint8_t permuted[2] = {1, 0};
  arguments.token_dims[0] = 5;
  arguments.token_dims[1] = 1;
  arguments.args[0].dim_order = permuted;
  check_refused(arguments);
  Arguments output({3, 1, 4, 1, 5}, 0);
  output.args[2].dim_order = nullptr;
  CHECK_EQ(execute(output.args, 3), static_cast<uint32_t>(ETWGPU_OK));
}

TEST(a_prompt_beyond_the_bound_is_refused) {
  Arguments arguments(std::vector<int64_t>(Model::get().longest + 1, 3), 0);
  check_refused(arguments);
}

TEST(a_position_beyond_the_cache_is_refused) {
  for (const int64_t position : {int64_t{1} << 20, int64_t{1} << 40, int64_t{-1}}) {
    Arguments arguments({3}, position);
    check_refused(arguments);
  }
}

TEST(a_host_that_cannot_resize_is_an_error) {
  expected();
  Arguments arguments({3, 1, 4, 1, 5}, 0);
  CHECK(execute(arguments.args, 3, true) != ETWGPU_OK);
  check_still_works();
}

TEST(steps_are_profiled_on_request) {
  Arguments arguments({3, 1, 4, 1, 5}, 0);
  Host host;
  const EtwgpuHost table = host.table(true);
  CHECK_EQ(etwgpu_execute(program(), &table, arguments.args, 3), static_cast<uint32_t>(ETWGPU_OK));
  CHECK(host.output == expected());
  CHECK(!host.steps.empty());
  for (const auto& [start, end] : host.steps) {
    CHECK(start <= end);
  }
}
