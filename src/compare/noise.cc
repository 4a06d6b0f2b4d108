#include "gdrperf/compare/noise.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/stats/shift.h"
#include "compare/shift.h"

namespace gdrperf::compare {
namespace {

using Json = nlohmann::ordered_json;

/// Per direction. The promise is 0.999; Student's t is exact for means and standard
/// deviations, and medians and robust spreads vary a little more (with 0.999 a cell
/// alone, three sessions against twenty, alarmed 1.25 times in a thousand).
constexpr double kCertainty = 0.9995;
constexpr std::size_t kWorthAtMost = 3;
constexpr std::size_t kLargestNoiseFile = std::size_t{64} << 20;

/// Student's quantile; ten thousand cells mostly ask for one of them.
double certain_t(int freedom) {
  constexpr int kMostFreedom = 100;
  static const std::vector<double> quantiles = [] {
    std::vector<double> list;
    for (int i = 1; i <= kMostFreedom; ++i) list.push_back(stats::student_t_quantile(kCertainty, i));
    return list;
  }();
  return quantiles[static_cast<std::size_t>(std::clamp(freedom, 1, kMostFreedom) - 1)];
}

CellNoise noise_from(const Json& item) {
  CellNoise noise;
  noise.key.name = item.at("cell").get<std::string>();
  noise.key.better = noise.key.name.raw().find("_lat/") != std::string::npos ? Better::kLower : Better::kHigher;
  for (const auto& [name, value] : item.at("conditions").items()) {
    noise.key.conditions.push_back({name, value.get<std::string>()});
  }
  noise.sessions = item.at("sessions").get<std::size_t>();
  noise.spread = item.at("spread_percent").get<double>() / 100;
  return noise;
}

}  // namespace

std::optional<CellNoise> measure_noise(const Series& series) {
  if (series.values.size() < kFewestForNoise) return std::nullopt;
  std::vector<double> logs;
  for (const double value : series.values) logs.push_back(std::log(value));
  return CellNoise{series.key, series.values.size(), stats::robust_spread(logs)};
}

double noise_shift(const CellNoise& noise, std::size_t baseline, std::size_t candidates) {
  return certain_t(stats::spread_freedom(noise.sessions)) * noise_error(noise, baseline, candidates);
}

double noise_error(const CellNoise& noise, std::size_t baseline, std::size_t candidates) {
  const double worth = static_cast<double>(std::clamp<std::size_t>(candidates, 1, kWorthAtMost));
  const double base = static_cast<double>(std::max<std::size_t>(baseline, 1));
  return noise.spread * std::sqrt(1 / base + 1 / worth);
}

namespace {

/// Of logarithms in the order of their starts, corrected for its bias; nullopt where there are too few, or they do not
/// vary.
std::optional<double> lag_one(const Series& series) {
  constexpr std::size_t kFewest = 10;
  const std::size_t n = series.values.size();
  if (n < kFewest) return std::nullopt;
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (series.starts.size() == n) {
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return series.starts[a] < series.starts[b]; });
  }
  std::vector<double> logs;
  for (const std::size_t i : order) logs.push_back(std::log(series.values[i]));
  // What is left of equal values is the rounding of their mean, and that follows itself.
  const auto [least, most] = std::minmax_element(logs.begin(), logs.end());
  if (*least == *most) return std::nullopt;
  const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(n);
  double squares = 0;
  double products = 0;
  for (std::size_t i = 0; i < n; ++i) {
    squares += (logs[i] - mean) * (logs[i] - mean);
    if (i > 0) products += (logs[i] - mean) * (logs[i - 1] - mean);
  }
  const double found = products / squares;
  return found + (1 + 3 * found) / static_cast<double>(n);
}

double error_of_lag_one(const Series& series) { return 1 / std::sqrt(static_cast<double>(series.values.size())); }

}  // namespace

double correlation_of(const Series& baseline) {
  constexpr double kMostCorrelation = 0.9;
  const double found = lag_one(baseline).value_or(0);
  return found > error_of_lag_one(baseline) ? std::min(found, kMostCorrelation) : 0;
}

bool correlated(const Series& baseline) {
  constexpr double kQuantile995 = 2.576;
  return lag_one(baseline).value_or(0) > kQuantile995 * error_of_lag_one(baseline);
}

Allowance allowance(const CellNoise& noise, const Series& baseline, std::size_t candidates) {
  const double correlation = correlation_of(baseline);
  const auto sessions = static_cast<double>(std::max<std::size_t>(baseline.values.size(), 1));
  const double base = std::max(1.0, sessions * (1 - correlation) / (1 + correlation));
  const double independent = static_cast<double>(std::clamp<std::size_t>(candidates, 1, kWorthAtMost));
  const double worth = 1 + (independent - 1) * (1 - correlation) / (1 + correlation);
  const double error = noise.spread * std::sqrt(1 / base + 1 / worth);
  return {certain_t(stats::spread_freedom(noise.sessions)) * error, error};
}

void NoiseTable::add(CellNoise noise) {
  std::vector<CellNoise>& all = cells_[noise.key.name];
  for (CellNoise& each : all) {
    if (changes(each.key, noise.key, {}).empty()) {
      each = std::move(noise);
      return;
    }
  }
  all.push_back(std::move(noise));
  ++size_;
}

const CellNoise* NoiseTable::find(const CellKey& key, const std::set<std::string>& across) const {
  const auto found = cells_.find(key.name);
  if (found == cells_.end()) return nullptr;
  const CellNoise* widest = nullptr;
  for (const CellNoise& each : found->second) {
    // In this direction: a condition that is younger than the file is none of its.
    if (!changes(key, each.key, across).empty()) continue;
    if (!widest || each.spread > widest->spread) widest = &each;
  }
  return widest;
}

std::string NoiseTable::to_json() const {
  Json cells = Json::array();
  for (const auto& [name, all] : cells_) {
    for (const CellNoise& each : all) {
      Json conditions = Json::object();
      for (const Condition& condition : each.key.conditions) conditions[condition.name] = condition.value;
      const double shift =
          std::abs(share_of(-noise_shift(each, each.sessions, kWorthAtMost), each.key.better));
      cells.push_back({{"cell", name},
                       {"sessions", each.sessions},
                       {"spread_percent", std::round(each.spread * 1e7) / 1e5},
                       {"noise_percent", std::round(shift * 1e7) / 1e5},
                       {"conditions", std::move(conditions)}});
    }
  }
  const Json document = {{"schema", kNoiseSchema}, {"cells", std::move(cells)}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void NoiseTable::read(std::string_view text, const std::string& path) {
  try {
    const Json document = Json::parse(text);
    if (!document.is_object() || document.value("schema", "") != kNoiseSchema) {
      throw usage_error(fmt::format("{}: its schema is not '{}'", path, kNoiseSchema),
                        "'gdrperf baseline noise' writes such a file");
    }
    for (const Json& item : document.at("cells")) {
      CellNoise noise = noise_from(item);
      if (noise.sessions < kFewestForNoise || !(noise.spread >= 0) || noise.spread > 100) {
        throw usage_error(fmt::format("{}: '{}' has no usable spread", path, printable(noise.key.name)));
      }
      add(std::move(noise));
    }
  } catch (const Json::exception& error) {
    throw usage_error(fmt::format("{}: {:.200}", path, error.what()),
                      "'gdrperf baseline noise' writes it anew");
  }
}

NoiseTable read_noise_at(const std::string& folder) {
  namespace fs = std::filesystem;
  NoiseTable table;
  std::error_code error;
  if (!fs::is_directory(folder, error)) return table;
  std::vector<fs::path> files = {fs::path(folder) / kNoiseFile};
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    files.push_back(it->path() / kNoiseFile);
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    if (fs::is_regular_file(file, error)) table.read(read_file(file.string(), kLargestNoiseFile), file.string());
  }
  return table;
}

}  // namespace gdrperf::compare
