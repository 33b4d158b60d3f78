#include "harness.h"

#include <cstdio>
#include <exception>
#include <mutex>
#include <vector>

namespace harness {
namespace {

struct Test {
  const char* name;
  Body body;
};

std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

std::mutex failures_lock;
int failures = 0;
std::string model;
std::string plugin;

} // namespace

Registration::Registration(const char* name, Body body) {
  tests().push_back({name, body});
}

void fail(const char* file, int line, const std::string& what) {
  const std::lock_guard<std::mutex> hold(failures_lock);
  ++failures;
  std::printf("  %s:%d: %s\n", file, line, what.c_str());
}

const std::string& model_path() {
  return model;
}

const std::string& plugin_path() {
  return plugin;
}

} // namespace harness

int main(int argc, char** argv) {
  using namespace harness;
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s MODEL.pte PLUGIN\n", argv[0]);
    return 2;
  }
  model = argv[1];
  plugin = argv[2];
  int failed = 0;
  for (const Test& test : tests()) {
    const int before = failures;
    try {
      test.body();
    } catch (const std::exception& error) {
      fail(test.name, 0, error.what());
    }
    const bool passed = failures == before;
    failed += passed ? 0 : 1;
    std::printf("%s %s\n", passed ? "ok  " : "FAIL", test.name);
    std::fflush(stdout);
  }
  std::printf("%zu tests, %d failed\n", tests().size(), failed);
  return failed == 0 ? 0 : 1;
}
