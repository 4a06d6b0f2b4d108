#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/base/error.h"

namespace gdrperf::report {

/// A line of a file, for messages.
struct ImportPlace {
  const std::string& file;
  std::size_t line = 0;

  /// usage_error("FILE:LINE: ...")
  Error error(const std::string& message, const std::string& hint = {}) const;
  std::string text() const;
};

/// Lines of a text, counted from 1; without their ends, "\r\n" included.
class ImportLines {
 public:
  explicit ImportLines(std::string_view text) : rest_(text) {}

  bool next();
  std::string_view line() const { return line_; }
  std::size_t number() const { return number_; }
  /// The text ended with it, before a line end.
  bool open_ended() const { return open_; }

 private:
  std::string_view rest_;
  std::string_view line_;
  std::size_t number_ = 0;
  bool open_ = false;
};

/// Words between blanks and tabs.
std::vector<std::string_view> words_of(std::string_view line);

/// The whole of `word`: digits, and for a quantity a point and digits. nullopt for anything else (signs, NaN,
/// exponents).
std::optional<std::uint64_t> count_in(std::string_view word);
std::optional<double> quantity_in(std::string_view word);

}  // namespace gdrperf::report
