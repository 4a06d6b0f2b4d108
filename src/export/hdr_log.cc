#include "gdrperf/export/hdr_log.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/base/compat/bits.h"
#include "gdrperf/base/error.h"
#include "gdrperf/report/document.h"

namespace gdrperf::report {
namespace {

// The cookies have 0x10 added: counts of variable length.
constexpr std::uint32_t kCookie = 0x1c849303 | 0x10;
constexpr std::uint32_t kCompressedCookie = 0x1c849304 | 0x10;
constexpr std::uint32_t kDigits = 3;
/// 2 * 10^kDigits values are told apart in the first bucket: the next power of two.
constexpr unsigned kSubBucketBits = 11;
constexpr std::uint64_t kHighestNs = 3'600'000'000'000;

std::size_t index_of(std::uint64_t value) {
  constexpr std::uint64_t kMask = (std::uint64_t{1} << kSubBucketBits) - 1;
  const auto bucket = static_cast<unsigned>(std::bit_width(value | kMask)) - kSubBucketBits;
  const std::uint64_t within = value >> bucket;
  constexpr std::uint64_t kHalf = std::uint64_t{1} << (kSubBucketBits - 1);
  return ((static_cast<std::size_t>(bucket) + 1) << (kSubBucketBits - 1)) + static_cast<std::size_t>(within) - kHalf;
}

std::vector<std::uint64_t> counts_of(const stats::Histogram& histogram, double scale) {
  std::vector<std::uint64_t> counts;
  const auto add = [&](double value, std::uint64_t count) {
    const auto ns =
        static_cast<std::uint64_t>(std::clamp(std::round(value * scale), 0.0, static_cast<double>(kHighestNs)));
    const std::size_t index = index_of(ns);
    if (counts.size() <= index) counts.resize(index + 1);
    counts[index] += count;
  };
  for (const stats::Histogram::Counted& bucket : histogram.buckets()) {
    std::uint64_t rest = bucket.count;
    const auto take = [&](std::uint64_t exact) {
      if (rest == 0 || exact < bucket.low || exact > bucket.high) return;
      add(static_cast<double>(exact), 1);
      --rest;
    };
    take(histogram.max());
    take(histogram.min());
    if (rest > 0) add((static_cast<double>(bucket.low) + static_cast<double>(bucket.high)) / 2, rest);
  }
  return counts;
}

void put_big_endian(std::string& out, std::uint64_t value, unsigned bytes) {
  while (bytes-- > 0) out += static_cast<char>(value >> (8 * bytes));
}

/// ZigZag LEB128 of at most 9 bytes, the ninth whole.
void put_count(std::string& out, std::int64_t count) {
  std::uint64_t value = (static_cast<std::uint64_t>(count) << 1) ^ static_cast<std::uint64_t>(count >> 63);
  for (int i = 0; i < 8 && value > 0x7f; ++i) {
    out += static_cast<char>((value & 0x7f) | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

/// Counts in a row, zeros that follow each other as their negative number.
std::string payload_of(const std::vector<std::uint64_t>& counts) {
  std::string payload;
  for (std::size_t at = 0; at < counts.size();) {
    std::size_t end = at;
    while (end < counts.size() && counts[end] == 0) ++end;
    if (end - at > 1) {
      put_count(payload, -static_cast<std::int64_t>(end - at));
      at = end;
    } else {
      put_count(payload, static_cast<std::int64_t>(counts[at++]));
    }
  }
  return payload;
}

std::string encoded(const std::vector<std::uint64_t>& counts) {
  const std::string payload = payload_of(counts);
  std::string out;
  put_big_endian(out, kCookie, 4);
  put_big_endian(out, payload.size(), 4);
  put_big_endian(out, 0, 4);  // offset of a shifted histogram
  put_big_endian(out, kDigits, 4);
  put_big_endian(out, 1, 8);  // lowest value told apart
  put_big_endian(out, kHighestNs, 8);
  put_big_endian(out, bit_cast<std::uint64_t>(1.0), 8);  // of integers to doubles
  return out + payload;
}

std::string compressed(const std::string& content) {
  uLongf size = ::compressBound(content.size());
  std::string packed(size, '\0');
  if (::compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(content.data()),
                 content.size()) != Z_OK) {
    throw Error(ExitCode::kEnvironment, "zlib cannot compress a histogram");
  }
  packed.resize(size);
  std::string out;
  put_big_endian(out, kCompressedCookie, 4);
  put_big_endian(out, packed.size(), 4);
  return out + packed;
}

/// RFC 4648.
std::string base64(std::string_view bytes) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t word = 0;
    for (std::size_t i = 0; i < 3; ++i) word = word << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i) text += i <= count ? kAlphabet[word >> (18 - 6 * i) & 0x3f] : '=';
  }
  return text;
}

}  // namespace

std::string hdr_log_header(std::chrono::system_clock::time_point start, const std::string& tool) {
  const double seconds = std::chrono::duration<double>(start.time_since_epoch()).count();
  return fmt::format(
      "#[Logged with {}]\n#[Histogram log format version 1.3]\n#[StartTime: {:.3f} (seconds since epoch), {}]\n"
      "#[BaseTime: {:.3f} (seconds since epoch)]\n#[Values: nanoseconds; Interval_Max: milliseconds]\n"
      "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
      tool, seconds, rfc3339_utc(start), seconds);
}

std::string hdr_log_line(const HdrStretch& stretch) {
  const double max_ms = static_cast<double>(stretch.histogram.max()) * stretch.scale / 1e6;
  return fmt::format("Tag={},{:.9f},{:.9f},{:.6f},{}\n", stretch.tag, stretch.start_s, stretch.seconds, max_ms,
                     base64(compressed(encoded(counts_of(stretch.histogram, stretch.scale)))));
}

}  // namespace gdrperf::report
