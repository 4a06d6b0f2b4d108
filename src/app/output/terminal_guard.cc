#include "app/output/terminal_guard.h"

#include <unistd.h>

#include <iostream>

#include "gdrperf/base/printable.h"

namespace gdrperf::app {

TerminalGuard::TerminalGuard() {
  if (::isatty(STDOUT_FILENO) != 0) behind_ = std::cout.rdbuf(this);
}

TerminalGuard::~TerminalGuard() {
  if (behind_ == nullptr) return;
  std::cout.flush();
  std::cout.rdbuf(behind_);
}

bool TerminalGuard::pass_on(std::size_t bytes) {
  const std::string text = terminal_text(std::string_view(waiting_).substr(0, bytes));
  waiting_.erase(0, bytes);
  const auto count = static_cast<std::streamsize>(text.size());
  return behind_->sputn(text.data(), count) == count;
}

std::streamsize TerminalGuard::xsputn(const char* text, std::streamsize count) {
  waiting_.append(text, static_cast<std::size_t>(count));
  // Whole lines: a character or a sequence that comes in two parts is whole there.
  const std::size_t end = waiting_.rfind('\n');
  return end == std::string::npos || pass_on(end + 1) ? count : 0;
}

TerminalGuard::int_type TerminalGuard::overflow(int_type character) {
  if (traits_type::eq_int_type(character, traits_type::eof())) return traits_type::not_eof(character);
  const char one = traits_type::to_char_type(character);
  return xsputn(&one, 1) == 1 ? character : traits_type::eof();
}

int TerminalGuard::sync() { return (waiting_.empty() || pass_on(waiting_.size())) && behind_->pubsync() == 0 ? 0 : -1; }

}  // namespace gdrperf::app
