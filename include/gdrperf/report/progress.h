#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace gdrperf::report {

/// One line that says where a long command stands, rewritten in place, on a
/// terminal only: elsewhere every call does nothing. clear() before anything
/// else is printed on the same terminal. Not thread-safe.
class ProgressLine {
 public:
  /// `out` (stderr) is borrowed.
  explicit ProgressLine(std::FILE* out);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// A terminal that can rewrite a line.
  bool enabled() const { return enabled_; }
  void show(std::string_view text);
  /// Takes the line away.
  void clear();

 private:
  std::FILE* out_;
  bool enabled_;
  bool shown_ = false;
};

/// Progress through several runs: "[12/138] write_bw 64 KiB, 2 min left".
std::string progress_line(std::size_t done, std::size_t total, std::string_view what,
                          std::chrono::duration<double> elapsed);

/// "2.5 s", "30 s", "2 min".
std::string short_time(double seconds);

}  // namespace gdrperf::report
