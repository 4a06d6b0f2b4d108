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
class Progress {
 public:
  /// `total` runs lie ahead. `out` (stderr) is borrowed.
  Progress(std::FILE* out, std::size_t total);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` runs have ended and `what` ("write_bw 64 KiB") is on.
  void update(std::size_t done, std::string_view what);
  /// Takes the line away.
  void clear();

 private:
  std::FILE* out_;
  std::size_t total_;
  bool enabled_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

/// The line's text, at most `width` columns: "[12/138] write_bw 64 KiB, 2 min left".
std::string progress_line(std::size_t done, std::size_t total, std::string_view what,
                          std::chrono::duration<double> elapsed, std::size_t width);

}  // namespace gdrperf::report
