#pragma once

#include <sstream>
#include <string>

namespace harness {

using Body = void (*)();

/// Adds a test to those that the program runs, in the order of the file.
struct Registration {
  Registration(const char* name, Body body);
};

/// Records a failed check of the running test and goes on.
void fail(const char* file, int line, const std::string& what);

/// First argument of the program: the .pte that the tests load.
const std::string& model_path();

/// Second argument of the program: the plug-in.
const std::string& plugin_path();

template <typename T>
std::string show(const T& value) {
  std::ostringstream text;
  if constexpr (std::is_enum_v<T>) {
    text << static_cast<unsigned long long>(value);
  } else {
    text << value;
  }
  return text.str();
}

template <typename A, typename B>
void check_equal(const A& found, const B& expected, const char* file, int line, const char* what) {
  if (!(found == expected)) {
    fail(file, line, std::string(what) + ": found " + show(found) + ", expected " + show(expected));
  }
}

} // namespace harness

#define TEST(name)                                                        \
  static void test_##name();                                              \
  static const harness::Registration registration_##name(#name, test_##name); \
  static void test_##name()

#define CHECK(condition)                             \
  do {                                               \
    if (!(condition)) {                              \
      harness::fail(__FILE__, __LINE__, #condition); \
    }                                                \
  } while (false)

#define CHECK_EQ(found, expected) harness::check_equal((found), (expected), __FILE__, __LINE__, #found)
