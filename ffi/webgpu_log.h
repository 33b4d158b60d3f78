#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/platform/log.h>

#include "executorch_webgpu.h"

namespace etwgpu {

using executorch::runtime::Error;

enum Level : uint32_t { kError = 1, kWarning = 2, kInfo = 3, kDebug = 4 };

/// ExecuTorch's log holds 256 bytes a line and cuts what is longer.
constexpr size_t kLineBytes = 200;

inline void log_line(uint32_t level, const char* line, size_t len) {
  const int width = static_cast<int>(len);
  switch (level) {
    case kError:
      ET_LOG(Error, "%.*s", width, line);
      break;
    case kWarning:
      ET_LOG(Info, "warning: %.*s", width, line);
      break;
    case kInfo:
      ET_LOG(Info, "%.*s", width, line);
      break;
    default:
      ET_LOG(Debug, "%.*s", width, line);
      break;
  }
}

/// Bytes of `text` that make the next line: up to a line break, else up to a space, else up to a whole UTF-8 character.
inline size_t line_length(const char* text, size_t len) {
  const size_t limit = len < kLineBytes ? len : kLineBytes;
  if (const void* line_break = std::memchr(text, '\n', limit)) {
    return static_cast<size_t>(static_cast<const char*>(line_break) - text);
  }
  if (limit == len) {
    return len;
  }
  for (size_t end = limit; end > 0; --end) {
    if (text[end] == ' ') {
      return end;
    }
  }
  size_t end = limit;
  while (end > 1 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  return end;
}

/// Writes `message` to ExecuTorch's log, as several lines when it is long. `level` is one of `Level`.
inline void log_message(uint32_t level, const char* message, size_t len) {
  while (len > 0) {
    const size_t taken = line_length(message, len);
    log_line(level, message, taken);
    const size_t separator = taken < len && (message[taken] == ' ' || message[taken] == '\n') ? 1 : 0;
    message += taken + separator;
    len -= taken + separator;
  }
}

/// Writes the sentence of the calling thread's last failure to the log.
inline void log_last_error() {
  char text[1024];
  const size_t len = etwgpu_last_error(text, sizeof(text));
  if (len < sizeof(text)) {
    log_message(kError, text, len);
    return;
  }
  std::unique_ptr<char[]> whole(new (std::nothrow) char[len + 1]);
  if (whole == nullptr) {
    log_message(kError, text, sizeof(text) - 1);
    return;
  }
  etwgpu_last_error(whole.get(), len + 1);
  log_message(kError, whole.get(), len);
}

inline Error to_error(uint32_t status) {
  switch (status) {
    case ETWGPU_OK:
      return Error::Ok;
    case ETWGPU_SHAPE:
    case ETWGPU_OPTION:
      return Error::InvalidArgument;
    case ETWGPU_PAYLOAD:
    case ETWGPU_UNSUPPORTED:
    case ETWGPU_DATA:
      return Error::DelegateInvalidCompatibility;
    case ETWGPU_OUT_OF_MEMORY:
      return Error::MemoryAllocationFailed;
    default:
      return Error::Internal;
  }
}

/// Turns a status into ExecuTorch's error; a failure is logged as "`doing` `subject`: <error>" and the delegate's sentence.
inline Error report(uint32_t status, const char* doing, const char* subject) {
  const Error error = to_error(status);
  if (error != Error::Ok) {
    ET_LOG(Error, "cannot %s %s: %s", doing, subject, executorch::runtime::to_string(error));
    log_last_error();
  }
  return error;
}

} // namespace etwgpu
