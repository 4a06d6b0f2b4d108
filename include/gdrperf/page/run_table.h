#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gdrperf::page {

/// The runs of one document as text, column by column: what report::fields() lists,
/// the run's name in front, the samples beyond each percentile behind. "" is what
/// the document does not say.
class RunTable {
 public:
  /// The same for every document.
  static const std::vector<std::string>& columns();
  /// Place of a column that exists.
  static std::size_t place(std::string_view column);

  /// A run: a text for each column; its batches in time order (Gb/s or ns).
  void add(std::vector<std::string> row, std::vector<double> series);

  /// The same text in a column of every run.
  void set_all(std::string_view column, const std::string& text);

  std::size_t rows() const { return rows_.size(); }
  const std::string& text(std::size_t row, std::string_view column) const { return rows_[row][place(column)]; }
  /// Of the column at place().
  const std::string& text_at(std::size_t row, std::size_t place) const { return rows_[row][place]; }
  /// NaN where there is no number.
  double number(std::size_t row, std::string_view column) const;
  const std::vector<double>& series(std::size_t row) const { return series_[row]; }

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::vector<double>> series_;
};

/// The number that is all of `text`; NaN where it is none.
double number_of(const std::string& text);

/// Places of a run's memory and NIC: "GPU0/mlx5_0", "host/mlx5_0".
std::string place_of(const RunTable& runs, std::size_t row);

}  // namespace gdrperf::page
