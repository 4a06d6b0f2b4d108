#include "gdrperf/base/printable.h"

#include <cstddef>
#include <cstdint>

namespace gdrperf {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

/// One character of UTF-8; `length` 0: none begins here.
struct Character {
  std::uint32_t code = 0;
  std::size_t length = 0;
};

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return {byte(0), 1};
  const std::size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length) return {};
  std::uint32_t code = byte(0) & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[length] || code > 0x10ffff || surrogate) return {};
  return {code, length};
}

bool harmless(std::uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool direction = code == 0x61c || code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
                         (code >= 0x2066 && code <= 0x2069);
  const bool line = code == 0x2028 || code == 0x2029;
  return !control && !direction && !line;
}

std::string filtered(std::string_view text, std::string_view kept) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Character next = first_character(text);
    const std::size_t length = next.length == 0 ? 1 : next.length;
    const bool stays = next.length != 0 && (harmless(next.code) || kept.find(text.front()) != kept.npos);
    result += stays ? text.substr(0, length) : kReplacement;
    text.remove_prefix(length);
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) { return filtered(text, {}); }

std::string printable_lines(std::string_view text) { return filtered(text, "\n"); }

std::string markdown_text(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    // '&' begins entities, '@' mentions people on some pages.
    if (c == '@') {
      result += "&#64;";
    } else if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else {
      if (std::string_view("|`*_[]\\~!").find(c) != std::string_view::npos) result += '\\';
      result += c;
    }
  }
  return result;
}

std::string markdown_code(std::string_view text) {
  std::string result = "`";
  for (const char c : printable(text)) {
    if (c == '|') result += '\\';
    result += c == '`' ? '?' : c;
  }
  return result + "`";
}

}  // namespace gdrperf
