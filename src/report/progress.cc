#include "gdrperf/report/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include <fmt/format.h>

namespace gdrperf::report {
namespace {

bool can_rewrite(std::FILE* out) {
  const char* term = std::getenv("TERM");
  return ::isatty(::fileno(out)) != 0 && !(term != nullptr && std::string_view(term) == "dumb");
}

std::size_t columns_of(std::FILE* out) {
  winsize size{};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::string time_left(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s left", seconds);
  return fmt::format("{:.0f} min left", seconds / 60);
}

}  // namespace

std::string progress_line(std::size_t done, std::size_t total, std::string_view what,
                          std::chrono::duration<double> elapsed, std::size_t width) {
  std::string line = fmt::format("[{}/{}] {}", done, total, what);
  if (done > 0 && done < total) {
    const double per_run = elapsed.count() / static_cast<double>(done);
    line += ", " + time_left(per_run * static_cast<double>(total - done));
  }
  if (line.size() > width) line.resize(width);
  return line;
}

Progress::Progress(std::FILE* out, std::size_t total)
    : out_(out), total_(total), enabled_(can_rewrite(out)) {}

void Progress::update(std::size_t done, std::string_view what) {
  if (!enabled_) return;
  // One column is left free: writing into the last one wraps on some terminals.
  const std::string line = progress_line(
      done, total_, what, std::chrono::steady_clock::now() - started_, columns_of(out_) - 1);
  std::fprintf(out_, "\r\033[K%s", line.c_str());
  std::fflush(out_);
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  std::fputs("\r\033[K", out_);
  std::fflush(out_);
  shown_ = false;
}

}  // namespace gdrperf::report
