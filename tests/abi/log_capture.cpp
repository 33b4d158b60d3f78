#include "log_capture.h"

#include <algorithm>
#include <mutex>

#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

namespace log_capture {
namespace {

std::mutex lock;
std::string errors;
size_t longest = 0;

void keep(
    et_timestamp_t,
    et_pal_log_level_t level,
    const char*,
    const char*,
    size_t,
    const char* message,
    size_t length) {
  const std::lock_guard<std::mutex> hold(lock);
  longest = std::max(longest, length);
  if (level == et_pal_log_level_t::kError) {
    errors.append(message, length).append(" ");
  }
}

} // namespace

void start() {
  executorch::runtime::register_pal(executorch::runtime::PalImpl::create(keep, __FILE__));
  executorch::runtime::runtime_init();
}

void clear() {
  const std::lock_guard<std::mutex> hold(lock);
  errors.clear();
  longest = 0;
}

bool error_says(const std::string& words) {
  const std::lock_guard<std::mutex> hold(lock);
  return errors.find(words) != std::string::npos;
}

size_t longest_line() {
  const std::lock_guard<std::mutex> hold(lock);
  return longest;
}

} // namespace log_capture
