#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/base/error.h"
#include "gdrperf/base/text.h"

namespace gdrperf::topo {

/// One word of a line.
struct Token {
  std::string_view text;
  std::size_t at = 0;      ///< offset in the line, in bytes
  std::size_t column = 0;  ///< the same with tabs expanded to multiples of 8
};

bool is_blank(char c);  ///< in a line

/// Words of a line, `max_tokens` at most.
std::vector<Token> tokens_of(std::string_view line, std::size_t max_tokens = SIZE_MAX);
/// The first word, empty when there is none.
std::string_view first_word(std::string_view line);

/// A word in quotes for a message: short and printable whatever it is.
std::string in_quotes(std::string_view word);

/// A terminal capture as plain lines: escape sequences (also those that lost
/// their ESC in a paste), the byte-order mark and carriage returns are gone and
/// no-break spaces are blanks. Line numbers are those of the file.
class CapturedText {
 public:
  /// Throws usage_error for what is no text (NUL bytes, UTF-16).
  CapturedText(std::string_view raw, std::string_view name);

  std::size_t lines() const noexcept { return starts_.size() - 1; }
  /// Line from 0, without the prefix when one is set and the line has it.
  std::string_view line(std::size_t index) const;
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }
  /// First non-blank line from `index` on among the next few; lines() when
  /// there is none.
  std::size_t next_non_blank(std::size_t index) const;

  /// "NAME:LINE: message"; `index` from 0. With `token`, which must point into
  /// a line() of this text, "NAME:LINE:COLUMN: message".
  Error error(std::size_t index, const std::string& message) const;
  Error error(std::size_t index, std::string_view token, const std::string& message) const;

 private:
  std::string name_;
  std::string text_;
  std::vector<std::uint32_t> starts_;  ///< of each line in text_, and the end
  std::string prefix_;
};

}  // namespace gdrperf::topo
