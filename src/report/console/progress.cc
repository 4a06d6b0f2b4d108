#include "gdrperf/report/progress.h"

#include <unistd.h>

#include <cstdlib>

#include <fmt/format.h>

#include "gdrperf/base/terminal.h"

namespace gdrperf::report {
namespace {

bool can_rewrite(std::FILE* out) {
  const char* term = std::getenv("TERM");
  return ::isatty(::fileno(out)) != 0 && !(term != nullptr && std::string_view(term) == "dumb");
}

}  // namespace

std::string short_time(double seconds) {
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  return fmt::format("{:.0f} min", seconds / 60);
}

std::string progress_line(std::size_t done, std::size_t total, std::string_view what,
                          std::chrono::duration<double> elapsed) {
  std::string line = fmt::format("[{}/{}] {}", done, total, what);
  if (done == 0 || done >= total) return line;
  const double per_run = elapsed.count() / static_cast<double>(done);
  return line + fmt::format(", {} left", short_time(per_run * static_cast<double>(total - done)));
}

ProgressLine::ProgressLine(std::FILE* out) : out_(out), enabled_(can_rewrite(out)) {}

void ProgressLine::show(std::string_view text) {
  if (!enabled_) return;
  // One column is left free: writing into the last one wraps on some terminals.
  const std::string_view fits = text.substr(0, terminal_columns(::fileno(out_)) - 1);
  std::fprintf(out_, "\r\033[K%.*s", static_cast<int>(fits.size()), fits.data());
  std::fflush(out_);
  shown_ = true;
}

void ProgressLine::clear() {
  if (!shown_) return;
  std::fputs("\r\033[K", out_);
  std::fflush(out_);
  shown_ = false;
}

}  // namespace gdrperf::report
