#include "topo/readers/captured_text.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace gdrperf::topo {
namespace {

constexpr char kEscape = '\x1b';

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Length of the escape sequence at `at`: CSI ("ESC[4m"), OSC (a window title,
/// up to BEL or ESC\), or ESC and one character.
std::size_t escape_length(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  if (end >= text.size()) return 1;
  if (text[end] == '[') {
    ++end;
    while (end < text.size() && (text[end] >= 0x20 && text[end] <= 0x3f)) ++end;
    const bool ends = end < text.size() && text[end] >= 0x40 && text[end] <= 0x7e;
    return end - at + (ends ? 1 : 0);
  }
  if (text[end] == ']') {
    // A title is short; an unterminated one must not swallow the file.
    const std::string_view rest = text.substr(at, 256);
    const std::size_t stop = rest.find_first_of("\x07\n");
    if (stop != std::string_view::npos && rest[stop] == '\x07') return stop + 1;
    const std::size_t terminator = rest.find("\x1b\\", 2);
    return terminator < stop && terminator != std::string_view::npos ? terminator + 2 : 2;
  }
  return text[end] == '\n' ? 1 : 2;
}

/// Length of what is left of "ESC[4m" when a paste dropped the ESC ("[4m") or
/// spelled it ("^[[4m"); 0 when `at` is not the start of such a thing.
std::size_t bare_colour_length(std::string_view text, std::size_t at) {
  std::size_t end = at;
  if (text.substr(end, 2) == "^[") end += 2;
  if (end >= text.size() || text[end] != '[') return 0;
  ++end;
  const std::size_t digits = end;
  while (end < text.size() && end < digits + 12 && (is_digit(text[end]) || text[end] == ';')) ++end;
  if (end == digits || !is_digit(text[digits]) || end >= text.size() || text[end] != 'm') return 0;
  return end + 1 - at;
}

Error not_text(std::string_view name, std::string_view raw, std::size_t at) {
  const auto line =
      1 + std::count(raw.begin(), raw.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  const bool utf16 = raw.starts_with("\xff\xfe") || raw.starts_with("\xfe\xff");
  return usage_error(fmt::format("{}:{}: {}, not the text that nvidia-smi topo -m prints", name,
                                 line, utf16 ? "UTF-16" : "binary data"),
                     utf16 ? "save it as UTF-8 (in PowerShell: | Out-File -Encoding utf8)" : "");
}

}  // namespace

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\f' || c == '\v'; }

std::vector<Token> tokens_of(std::string_view line, std::size_t max_tokens) {
  std::vector<Token> tokens;
  std::size_t column = 0;
  std::size_t at = 0;
  while (tokens.size() < max_tokens) {
    for (; at < line.size() && is_blank(line[at]); ++at) {
      column = line[at] == '\t' ? (column / 8 + 1) * 8 : column + 1;
    }
    if (at == line.size()) break;
    const std::size_t start = at;
    while (at < line.size() && !is_blank(line[at])) ++at;
    tokens.push_back({line.substr(start, at - start), start, column});
    column += at - start;
  }
  return tokens;
}

std::string_view first_word(std::string_view line) {
  std::size_t start = 0;
  while (start < line.size() && is_blank(line[start])) ++start;
  std::size_t end = start;
  while (end < line.size() && !is_blank(line[end])) ++end;
  return line.substr(start, end - start);
}

std::string in_quotes(std::string_view word) {
  constexpr std::size_t kShown = 24;
  std::string text = "'";
  for (const char c : word.substr(0, kShown)) {
    if (std::isprint(static_cast<unsigned char>(c)))
      text += c;
    else
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  text += word.size() > kShown ? "...'" : "'";
  if (word.size() > kShown) text += fmt::format(" ({} bytes long)", word.size());
  return text;
}

CapturedText::CapturedText(std::string_view raw, std::string_view name) : name_(name) {
  if (raw.starts_with("\xff\xfe") || raw.starts_with("\xfe\xff")) throw not_text(name, raw, 0);
  if (const std::size_t nul = raw.find('\0'); nul != std::string_view::npos) {
    throw not_text(name, raw, nul);
  }
  if (raw.size() > UINT32_MAX) throw usage_error(fmt::format("{}: too large", name));
  if (raw.starts_with("\xef\xbb\xbf")) raw.remove_prefix(3);
  text_.reserve(raw.size() + 1);
  starts_.push_back(0);
  for (std::size_t at = 0; at < raw.size();) {
    const char c = raw[at];
    if (c == kEscape) {
      at += escape_length(raw, at);
    } else if (const std::size_t colour = c == '[' || c == '^' ? bare_colour_length(raw, at) : 0) {
      at += colour;
    } else if (c == '\r') {
      ++at;
    } else if (raw.substr(at, 2) == "\xc2\xa0") {
      text_ += ' ';
      at += 2;
    } else {
      text_ += c;
      ++at;
      if (c == '\n') starts_.push_back(static_cast<std::uint32_t>(text_.size()));
    }
  }
  text_ += '\n';
  starts_.push_back(static_cast<std::uint32_t>(text_.size()));
}

std::string_view CapturedText::line(std::size_t index) const {
  const std::size_t start = starts_[index];
  std::string_view line = std::string_view(text_).substr(start, starts_[index + 1] - start - 1);
  if (!prefix_.empty() && line.starts_with(prefix_)) line.remove_prefix(prefix_.size());
  return line;
}

std::size_t CapturedText::next_non_blank(std::size_t index) const {
  constexpr std::size_t kFar = 8;
  for (std::size_t i = index; i < lines() && i < index + kFar; ++i) {
    if (!trimmed(line(i)).empty()) return i;
  }
  return lines();
}

Error CapturedText::error(std::size_t index, const std::string& message) const {
  return usage_error(fmt::format("{}:{}: {}", name_, index + 1, message));
}

Error CapturedText::error(std::size_t index, std::string_view token,
                          const std::string& message) const {
  const std::size_t at = static_cast<std::size_t>(token.data() - text_.data());
  return usage_error(
      fmt::format("{}:{}:{}: {}", name_, index + 1, at - starts_[index] + 1, message));
}

}  // namespace gdrperf::topo
