#include "gdrperf/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace gdrperf {
namespace {

bool set_to_something(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

const char* code_of(Style style) {
  switch (style) {
    case Style::kBold: return "\033[1m";
    case Style::kDim: return "\033[2m";
    case Style::kGood: return "\033[32m";
    case Style::kDoubtful: return "\033[33m";
    case Style::kBad: return "\033[31m";
  }
  return "";
}

/// Columns that `text` takes: every byte that begins a character counts as one.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

void append_wrapped(std::string& out, std::string_view line, std::size_t columns, std::size_t hang) {
  std::size_t used = 0;
  while (!line.empty()) {
    const std::size_t word = line.find_first_not_of(' ');
    if (word == std::string_view::npos) return;
    const std::size_t end = std::min(line.find(' ', word), line.size());
    const std::size_t width = width_of(line.substr(0, end));
    if (used > hang && used + width > columns) {
      out += '\n' + std::string(hang, ' ');
      out += line.substr(word, end - word);
      used = hang + width_of(line.substr(word, end - word));
    } else {
      out += line.substr(0, end);
      used += width;
    }
    line.remove_prefix(end);
  }
}

}  // namespace

Colour colour_for(int fd, ColourChoice choice) {
  if (choice != ColourChoice::kAuto) return choice == ColourChoice::kAlways ? Colour::kOn : Colour::kOff;
  if (set_to_something("NO_COLOR")) return Colour::kOff;
  const char* term = std::getenv("TERM");
  if (term != nullptr && std::string_view(term) == "dumb") return Colour::kOff;
  return ::isatty(fd) != 0 ? Colour::kOn : Colour::kOff;
}

std::string styled(Colour colour, Style style, const std::string& text) {
  return colour == Colour::kOn && !text.empty() ? code_of(style) + text + "\033[0m" : text;
}

std::size_t terminal_columns(int fd) {
  if (::isatty(fd) == 0) return 0;
  winsize size{};
  constexpr std::size_t kUsual = 80;
  return ::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 ? kUsual : size.ws_col;
}

bool locale_takes_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (!set_to_something(name)) continue;
    const std::string_view value = std::getenv(name);
    return value.find("UTF-8") != std::string_view::npos || value.find("utf8") != std::string_view::npos;
  }
  return false;
}

std::string wrapped(std::string_view text, std::size_t columns, std::size_t hang) {
  if (columns == 0) return std::string(text);
  std::string out;
  while (true) {
    const std::size_t end = text.find('\n');
    append_wrapped(out, text.substr(0, end), columns, hang);
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

}  // namespace gdrperf
