#include "gdrperf/base/units.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/compat/real.h"
#include "gdrperf/base/text.h"

namespace gdrperf {
namespace {

struct NumberAndUnit {
  double value;
  bool integral;
  std::uint64_t whole;
  std::string unit;  // lower case
};

std::optional<NumberAndUnit> split_number(std::string_view text) {
  NumberAndUnit result{};
  const char* end = text.data() + text.size();
  const auto real = real_from_chars(text.data(), end, result.value, std::chars_format::fixed);
  if (real.ec != std::errc() || result.value < 0) return std::nullopt;
  const auto whole = std::from_chars(text.data(), end, result.whole);
  result.integral = whole.ec == std::errc() && whole.ptr == real.ptr;
  for (const char* c = real.ptr; c != end; ++c) {
    result.unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  }
  return result;
}

constexpr std::string_view kSizeForms = "a number of bytes, or with K, M, G or T (powers of 1024), like 64K";

std::optional<int> size_shift(std::string_view unit) {
  if (unit.empty() || unit == "b") return 0;
  if (unit == "k" || unit == "kib") return 10;
  if (unit == "m" || unit == "mib") return 20;
  if (unit == "g" || unit == "gib") return 30;
  if (unit == "t" || unit == "tib") return 40;
  return std::nullopt;
}

void append_range(std::vector<std::uint64_t>& sizes, std::string_view item, std::string_view flag) {
  constexpr std::size_t kMaxSizes = 100'000;
  const auto parts = split(item, ':');
  if (parts.size() != 3 || parts[2].size() < 2 || (parts[2][0] != 'x' && parts[2][0] != '+')) {
    throw usage_error(fmt::format(
        "{} '{}': a range is FROM:TO:xFACTOR or FROM:TO:+STEP, like 2:8M:x2", flag, item));
  }
  const std::uint64_t from = parse_size(parts[0], flag);
  const std::uint64_t to = parse_size(parts[1], flag);
  if (from == 0 || to < from) {
    throw usage_error(fmt::format("{} '{}': FROM must be at least 1 and not above TO", flag, item));
  }
  const bool geometric = parts[2][0] == 'x';
  const std::uint64_t step = parse_size(parts[2].substr(1), flag);
  if (step < (geometric ? 2u : 1u)) {
    throw usage_error(fmt::format("{} '{}': the {} must be at least {}", flag, item,
                                  geometric ? "factor" : "step", geometric ? 2 : 1));
  }
  std::uint64_t size = from;
  while (size <= to) {
    sizes.push_back(size);
    if (sizes.size() > kMaxSizes) {
      throw usage_error(fmt::format("{} '{}': more than {} sizes", flag, item, kMaxSizes));
    }
    if (geometric ? size > to / step : size > to - step) break;
    size = geometric ? size * step : size + step;
  }
  if (geometric && sizes.back() != to) sizes.push_back(to);
}

}  // namespace

std::uint64_t parse_size(std::string_view text, std::string_view flag) {
  const auto parsed = split_number(text);
  const auto shift = parsed ? size_shift(parsed->unit) : std::nullopt;
  if (!shift) throw usage_error(fmt::format("{} '{}': not a size", flag, text), fmt::format("give {}", kSizeForms));
  if (parsed->integral) {
    if (parsed->whole > (~0ull >> *shift)) {
      throw usage_error(fmt::format("{} '{}': too large", flag, text));
    }
    return parsed->whole << *shift;
  }
  const double bytes = std::ldexp(parsed->value, *shift);
  if (bytes > 9e18 || bytes != std::floor(bytes)) {
    throw usage_error(fmt::format("{} '{}': not a whole number of bytes", flag, text));
  }
  return static_cast<std::uint64_t>(bytes);
}

std::chrono::nanoseconds parse_duration(std::string_view text, std::string_view flag) {
  const auto parsed = split_number(text);
  double scale = 0;
  if (parsed) {
    if (parsed->unit.empty() || parsed->unit == "s") scale = 1e9;
    else if (parsed->unit == "ms") scale = 1e6;
    else if (parsed->unit == "us") scale = 1e3;
    else if (parsed->unit == "ns") scale = 1;
    else if (parsed->unit == "m" || parsed->unit == "min") scale = 60e9;
    else if (parsed->unit == "h") scale = 3600e9;
  }
  if (scale == 0 || parsed->value * scale > 9e18) {
    throw usage_error(fmt::format(
        "{} '{}': not a time; give seconds, or a number with ns, us, ms, s, m or h, like 500ms", flag,
        text));
  }
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::llround(parsed->value * scale)));
}

double parse_rate(std::string_view text, std::string_view flag) {
  double value = 0;
  const auto number = real_from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  const std::string_view unit = text.substr(static_cast<std::size_t>(number.ptr - text.data()));
  double scale = 0;
  if (unit == "GB/s") scale = 1e9;
  else if (unit == "MB/s") scale = 1e6;
  else if (unit == "Gb/s") scale = 1e9 / 8;
  else if (unit == "Mb/s") scale = 1e6 / 8;
  if (number.ec != std::errc() || scale == 0 || !(value > 0) || value * scale > 1e15) {
    throw usage_error(fmt::format(
        "{} '{}': not a rate; give GB/s or MB/s (bytes, powers of 1000), Gb/s or Mb/s (bits), like 12.5GB/s",
        flag, text));
  }
  return value * scale;
}

std::vector<std::uint64_t> parse_size_list(std::string_view text, std::string_view flag) {
  std::vector<std::uint64_t> sizes;
  for (const std::string_view item : split(text, ',')) {
    if (item.find(':') != std::string_view::npos) {
      append_range(sizes, item, flag);
    } else {
      sizes.push_back(parse_size(item, flag));
    }
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

std::int64_t parse_integer(const std::string& text, std::string_view flag, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::invalid_argument || rest != end) {
    throw usage_error(
        fmt::format("{} '{}': not a number; give one from {} to {}", flag, text, low, high));
  }
  if (error != std::errc() || value < low || value > high) {
    throw usage_error(fmt::format("{} {}: must be from {} to {}", flag, text, low, high));
  }
  return value;
}

double parse_percent(const std::string& text, std::string_view flag) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = real_from_chars(text.data(), end, value, std::chars_format::fixed);
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  if (error != std::errc() || !(unit.empty() || unit == "%") || !is_percent(value)) {
    throw usage_error(
        fmt::format("{} '{}': give a percentage {}, like 1% or 0.5%", flag, text, kPercentRange));
  }
  return value / 100;
}

std::string format_size(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{} {}", bytes, kUnits[unit]);
}

std::string format_duration_ns(double ns) {
  if (ns < 999.5) return plain_digits(ns, 3) + " ns";
  if (ns < 999.5e3) return fmt::format("{} us", plain_digits(ns / 1e3, 3));
  if (ns < 999.5e6) return fmt::format("{} ms", plain_digits(ns / 1e6, 3));
  return fmt::format("{} s", plain_digits(ns / 1e9));
}

std::string format_rate(double bytes_per_s) {
  constexpr double kRoundsToThousand = 999.5;
  if (bytes_per_s < kRoundsToThousand * 1e3) return plain_digits(bytes_per_s / 1e3, 3) + " kB/s";
  if (bytes_per_s < kRoundsToThousand * 1e6) return plain_digits(bytes_per_s / 1e6, 3) + " MB/s";
  return plain_digits(bytes_per_s / 1e9) + " GB/s";
}

}  // namespace gdrperf
