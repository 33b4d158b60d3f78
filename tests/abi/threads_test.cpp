#include <atomic>
#include <optional>
#include <thread>

#include "executorch_webgpu.h"
#include "fixture.h"
#include "harness.h"

namespace {

using fixture::Arguments;
using fixture::Program;

std::vector<uint8_t> decode(EtwgpuProgram* program) {
  std::vector<uint8_t> all;
  Arguments prompt({3, 1, 4, 1, 5}, 0);
  all = fixture::run(program, prompt);
  for (int64_t position = 5; position < 12; ++position) {
    Arguments next({position}, position);
    const auto output = fixture::run(program, next);
    all.insert(all.end(), output.begin(), output.end());
  }
  return all;
}

template <typename Body>
void on_thread(Body body) {
  std::exception_ptr failure;
  std::thread([&] {
    try {
      body();
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) {
    std::rethrow_exception(failure);
  }
}

} // namespace

TEST(load_execute_and_destroy_on_three_threads) {
  const auto expected = decode(fixture::load().get());
  Program program;
  on_thread([&] { program = fixture::load(); });
  on_thread([&] { CHECK(decode(program.get()) == expected); });
  on_thread([&] { program.reset(); });
  CHECK(decode(fixture::load().get()) == expected);
}

TEST(two_programs_run_at_once_and_share_no_cache) {
  const Program first = fixture::load();
  const Program second = fixture::load();
  const auto expected = decode(first.get());
  std::atomic<int> different{0};
  const auto work = [&](EtwgpuProgram* program) {
    for (int round = 0; round < 3; ++round) {
      different += decode(program) == expected ? 0 : 1;
    }
  };
  std::thread one(work, first.get());
  std::thread two(work, second.get());
  one.join();
  two.join();
  CHECK_EQ(different.load(), 0);
}

TEST(destroy_while_another_loads) {
  for (int round = 0; round < 4; ++round) {
    std::optional<Program> old(fixture::load());
    Program fresh;
    std::thread loader([&] { fresh = fixture::load(); });
    old.reset();
    loader.join();
    Arguments prompt({3, 1, 4, 1, 5}, 0);
    CHECK(!fixture::run(fresh.get(), prompt).empty());
  }
}
