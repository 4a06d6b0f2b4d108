#pragma once

#include <compare>
#include <concepts>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "gdrperf/base/printable.h"

namespace gdrperf {

/// Text that somebody else chose: a name in sysfs, in a recording or a document, a message of a peer, a value of the
/// environment. Any string becomes one; it becomes a string by printable() or Markdown's two functions, as text for
/// people, by shell_word(), as a word of a command, or by raw(). Streams, fmt and operator+ do not compile
/// (tests/unit/outside_test.py).
class Outside {
 public:
  Outside() = default;
  Outside(std::string text) : text_(std::move(text)) {}
  Outside(std::string_view text) : text_(text) {}
  Outside(const char* text) : text_(text) {}

  /// As it came: to parse, to look up, to be a part of a path, an argument without a shell, or JSON. Not for people.
  const std::string& raw() const noexcept { return text_; }
  bool empty() const noexcept { return text_.empty(); }

  friend auto operator<=>(const Outside&, const Outside&) = default;
  friend bool operator==(const Outside&, const Outside&) = default;
  template <std::convertible_to<std::string_view> Text>
  friend bool operator==(const Outside& one, const Text& other) {
    return one.text_ == std::string_view(other);
  }
  friend std::ostream& operator<<(std::ostream&, const Outside&) = delete;

 private:
  std::string text_;
};

template <std::same_as<Outside> Text>
std::string printable(const Text& text) {
  return printable(std::string_view(text.raw()));
}

/// All of them, with ", " between.
template <typename Names>
std::string listed(const Names& names) {
  std::string text;
  for (const Outside& name : names) text += (text.empty() ? "" : ", ") + printable(name);
  return text;
}

template <std::same_as<Outside> Text>
std::string markdown_text(const Text& text) {
  return markdown_text(std::string_view(text.raw()));
}

template <std::same_as<Outside> Text>
std::string markdown_code(const Text& text) {
  return markdown_code(std::string_view(text.raw()));
}

/// In JSON it is data, as it came (nlohmann/json finds this).
template <typename Json, std::same_as<Outside> Text>
void to_json(Json& json, const Text& text) {
  json = text.raw();
}

/// As one word that a POSIX shell takes for itself alone: in quotes unless it holds nothing but letters, digits and
/// "_-.:/@+,". Control characters become U+FFFD, so it is no longer that name, and no command either.
std::string shell_word(const Outside& text);

}  // namespace gdrperf
