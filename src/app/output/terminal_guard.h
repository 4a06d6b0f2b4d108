#pragma once

#include <streambuf>
#include <string>

namespace gdrperf::app {

/// While it lives, what std::cout brings to a terminal passes terminal_text(): a name from a recording, a document or a
/// device that no table has cleaned moves no cursor there. Files and pipes get every byte. One at a time.
class TerminalGuard : public std::streambuf {
 public:
  TerminalGuard();
  ~TerminalGuard() override;
  TerminalGuard(const TerminalGuard&) = delete;
  TerminalGuard& operator=(const TerminalGuard&) = delete;

 protected:
  int_type overflow(int_type character) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  int sync() override;

 private:
  bool pass_on(std::size_t bytes);

  std::streambuf* behind_ = nullptr;  ///< null: no terminal, nothing is guarded
  std::string waiting_;               ///< since the last line's end, which may be in the middle of a character
};

}  // namespace gdrperf::app
