#pragma once

#include <string>

namespace log_capture {

/// Takes over ExecuTorch's log: from here on, lines are kept until the next `clear` and not printed.
void start();

void clear();

/// True when a line at error level contains `words`; a sentence that was cut into several lines counts as one.
bool error_says(const std::string& words);

/// Bytes of the longest line so far.
size_t longest_line();

} // namespace log_capture
