#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/compare/side.h"

namespace gdrperf::compare {

/// Value of `schema` in a file of recorded noise.
inline constexpr char kNoiseSchema[] = "gdrperf-noise/1";
inline constexpr char kNoiseFile[] = "noise.json";
/// With fewer sessions there is no saying how much a cell varies by itself.
inline constexpr std::size_t kFewestForNoise = 5;

/// How much sessions of a cell differ when nothing was changed.
struct CellNoise {
  CellKey key;
  std::size_t sessions = 0;
  /// Standard deviation of the logarithms of the sessions' values
  /// (stats::robust_spread), so a share of the value: 0.01 is 1 %.
  double spread = 0;
};

/// A sessions' spread; nullopt below kFewestForNoise values.
std::optional<CellNoise> measure_noise(const Series& series);

/// The shift, between logarithms, that `candidates` sessions show against `baseline`
/// ones in at most 1 of 1000 comparisons per direction when nothing was changed:
/// t(0.9995) * spread * sqrt(1 / baseline + 1 / min(candidates, 3)). More than
/// three candidates do not make it smaller: invocations one after another share
/// the state the machine is in, so they are worth less than their number.
double noise_shift(const CellNoise& noise, std::size_t baseline, std::size_t candidates);

/// The standard error of that shift, between logarithms.
double noise_error(const CellNoise& noise, std::size_t baseline, std::size_t candidates);

/// Correlation of a session with the one before, in the order of their starts: 0 where the sessions look independent
/// (it is within one standard error of 0) or are fewer than 10, and at most 0.9. A drift shows as one, too.
double correlation_of(const Series& baseline);
/// Whether it is beyond what chance gives one cell in 200.
bool correlated(const Series& baseline);

/// What a cell's noise allows candidates to differ by, and the standard error of the difference, between logarithms:
/// noise_shift() and noise_error() with as many sessions as correlated ones are worth.
struct Allowance {
  double noise = 0;
  double error = 0;
};
Allowance allowance(const CellNoise& noise, const Series& baseline, std::size_t candidates);

/// Result of `gdrperf baseline noise`.
class NoiseTable {
 public:
  void add(CellNoise noise);
  /// Of this cell under these conditions (those in `across` aside); nullptr.
  const CellNoise* find(const CellKey& key, const std::set<std::string>& across) const;
  std::size_t size() const { return size_; }
  const std::map<Outside, std::vector<CellNoise>>& cells() const { return cells_; }

  std::string to_json() const;
  /// Adds what `text` holds; `path` is for messages. Throws usage_error.
  void read(std::string_view text, const std::string& path);

 private:
  std::map<Outside, std::vector<CellNoise>> cells_;
  std::size_t size_ = 0;
};

/// The noise.json files in `folder` and in its folders; empty for a file.
NoiseTable read_noise_at(const std::string& folder);

}  // namespace gdrperf::compare
