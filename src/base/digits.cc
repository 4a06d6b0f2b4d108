#include "gdrperf/base/units.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

namespace gdrperf {
namespace {

constexpr int kMostDecimals = 12;
constexpr int kCellDecimals = 7;

std::string with_digits(double value, int digits) {
  const int magnitude = static_cast<int>(std::floor(std::log10(std::abs(value))));
  return fmt::format("{:.{}f}", value, std::clamp(digits - 1 - magnitude, 0, kMostDecimals));
}

}  // namespace

std::string plain_digits(double value, int digits) {
  if (!std::isfinite(value)) return "-";
  if (value == 0) return "0";
  std::string text = with_digits(value, digits);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string four_digits(double value) {
  constexpr double kSmallest = 1e-6;  // what has four digits below is wider than a column
  if (!std::isfinite(value)) return "-";
  if (value == 0) return "0";
  if (std::abs(value) < kSmallest) return "<0.000001";
  const int magnitude = static_cast<int>(std::floor(std::log10(std::abs(value))));
  return fmt::format("{:.{}f}", value, std::clamp(3 - magnitude, 0, kCellDecimals));
}

std::string about_size(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return fmt::format("{} {}", plain_digits(value, 3), kUnits[unit]);
}

}  // namespace gdrperf
