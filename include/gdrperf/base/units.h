#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gdrperf {

/// Parses a size in bytes: "65536", "64K", "64k", "64KiB", "8M", "1G", "1T"
/// (powers of 1024; "KB"/"MB"/"GB" are refused as ambiguous). `flag` is named
/// in the usage_error thrown on anything else.
std::uint64_t parse_size(std::string_view text, std::string_view flag);

/// Parses a time: "2s", "500ms", "10us", "3m"; a bare number is seconds.
std::chrono::nanoseconds parse_duration(std::string_view text, std::string_view flag);

/// The whole of `text` as an integer within [low, high]; usage_error naming
/// `flag` otherwise.
std::int64_t parse_integer(const std::string& text, std::string_view flag, std::int64_t low, std::int64_t high);

/// Range of a percentage, and that range in words.
constexpr bool is_percent(double percent) { return percent > 0 && percent < 100; }
inline constexpr const char* kPercentRange = "above 0 and below 100 %";

/// "1%", "0.5 %" or "1" as a fraction (0.01); usage_error naming `flag`
/// unless is_percent().
double parse_percent(const std::string& text, std::string_view flag);

/// Parses a rate into bytes per second: "12.5GB/s", "950MB/s" (powers of 1000)
/// or "100Gb/s", "40Mb/s" (bits). The case of the B decides.
double parse_rate(std::string_view text, std::string_view flag);

/// Parses a list of sizes: items separated by commas, each one a size or a
/// range "FROM:TO:xFACTOR" (geometric) or "FROM:TO:+STEP" (arithmetic), TO
/// included when met or, for the geometric one, always. Sorted, unique.
std::vector<std::uint64_t> parse_size_list(std::string_view text, std::string_view flag);

/// "64 KiB", "8 MiB", "3 B"; exact multiples only, else plain bytes.
std::string format_size(std::uint64_t bytes);

/// "1.50 us", "2.0 s": three significant digits and a unit.
std::string format_duration_ns(double ns);

/// "12.5 GB/s", "950 MB/s": three significant digits, powers of 1000.
std::string format_rate(double bytes_per_s);

/// `value` with that many significant digits, as people write it: "0.001998", "12346", never "1.2e+04"; "-" for no
/// number.
std::string plain_digits(double value, int digits = 4);

/// Four digits of a table's cell, zeros at its end included: "0.001998", "1.000", "12346". Nine characters below 1e9:
/// what is tiny has fewer digits ("0.0000033", "<0.000001").
std::string four_digits(double value);

/// "1 KiB", "15.6 MiB", "2.5 GiB": three significant digits.
std::string about_size(std::uint64_t bytes);

/// GB/s (1e9 bytes per second) as Gb/s (1e9 bits per second).
constexpr double gigabits_from_gigabytes(double gigabytes) { return gigabytes * 8.0; }

}  // namespace gdrperf
