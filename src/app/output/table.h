#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace gdrperf::app {

/// Left-aligned text columns, two blanks apart, for output people read.
class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }

  /// A row; cells it does not have are empty. What a terminal should not get is replaced.
  void add(std::vector<std::string> row);
  /// A line of its own below the last row, not aligned with the columns.
  void add_line(std::string text);
  /// Fitted to the terminal where `out` is one: what does not fit stands below its row.
  void print(std::ostream& out) const;
  /// The same for so many columns; 0: as wide as it is.
  void print(std::ostream& out, std::size_t columns) const;

 private:
  struct Line {
    std::size_t after;  ///< number of rows in front of it
    std::string text;
  };
  std::vector<std::vector<std::string>> rows_;
  std::vector<Line> lines_;
};

/// One line; where `out` is a terminal it is wrapped at words, the following ones indented by `hang`.
void print_line(std::ostream& out, const std::string& line, std::size_t hang);

}  // namespace gdrperf::app
