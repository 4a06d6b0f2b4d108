#include "gdrperf/proto/blocks.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/text.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/settings.h"

namespace gdrperf {
namespace {

constexpr std::uint64_t kLargestBlock = 1u << 30;

std::uint64_t block_bytes(std::string_view text, const std::string& where) {
  const std::uint64_t bytes = parse_size(text, where);
  // The largest of a mix may have become a little longer (with_whole_mean()).
  if (bytes >= 1 && bytes <= kLargestBlock + kMostBlocks) return bytes;
  throw usage_error(fmt::format("{} '{:.20}': a block has from 1 byte to 1 GiB", where, text));
}

std::uint64_t block_count(std::string_view text, const std::string& where) {
  return static_cast<std::uint64_t>(parse_integer(std::string(text), where, 1, static_cast<std::int64_t>(kMostBlocks)));
}

void check_count(const std::vector<BlockRun>& blocks, const std::string& where) {
  if (count_of(blocks) <= kMostBlocks) return;
  throw usage_error(fmt::format("{}: {} blocks; a list has {} at most", where, count_of(blocks), kMostBlocks),
                    "give smaller counts in the same proportion");
}

std::uint64_t total_of(const std::vector<BlockRun>& blocks) {
  return std::accumulate(blocks.begin(), blocks.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const BlockRun& each) { return sum + each.bytes * each.count; });
}

}  // namespace

std::vector<BlockRun> parse_blocks(const std::string& text, std::string_view flag) {
  std::vector<BlockRun> blocks;
  const std::string where(flag);
  for (const std::string_view item : split(text, ',')) {
    const std::size_t x = item.find('x');
    const std::string_view count = x == std::string_view::npos ? "1" : item.substr(x + 1);
    blocks.push_back({block_bytes(item.substr(0, x), where), block_count(count, where)});
    check_count(blocks, where);
  }
  return blocks;
}

std::vector<BlockRun> parse_block_file(const std::string& content, const std::string& file) {
  std::vector<BlockRun> blocks;
  int number = 0;
  for (const std::string_view whole : split(content, '\n')) {
    const std::string where = fmt::format("{} {}:{}", flag<&TestSpec::mix>(), file, ++number);
    std::vector<std::string_view> words;
    std::string line(whole.substr(0, whole.find('#')));
    for (char& c : line) c = c == '\t' || c == '\r' ? ' ' : c;
    for (const std::string_view word : split(line, ' ')) {
      if (!word.empty()) words.push_back(word);
    }
    if (words.empty()) continue;
    if (words.size() > 2) throw usage_error(where + ": a line is SIZE COUNT");
    blocks.push_back({block_bytes(words[0], where), words.size() == 1 ? 1 : block_count(words[1], where)});
    check_count(blocks, where);
  }
  if (blocks.empty())
    throw usage_error(fmt::format("{} {}: there are no blocks in it", flag<&TestSpec::mix>(), file),
                      "a line is SIZE COUNT");
  return blocks;
}

std::uint64_t count_of(const std::vector<BlockRun>& blocks) {
  return std::accumulate(blocks.begin(), blocks.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const BlockRun& each) { return sum + each.count; });
}

std::vector<BlockRun> with_whole_mean(std::vector<BlockRun> blocks, std::uint64_t& mean_bytes) {
  const std::uint64_t count = count_of(blocks);
  const std::uint64_t rest = total_of(blocks) % count;
  if (rest != 0) {
    const auto largest = std::max_element(blocks.begin(), blocks.end(),
                                          [](const BlockRun& a, const BlockRun& b) { return a.bytes < b.bytes; });
    const BlockRun longer{largest->bytes + count - rest, 1};
    if (--largest->count == 0) blocks.erase(largest);
    blocks.push_back(longer);
  }
  mean_bytes = total_of(blocks) / count;
  return blocks;
}

std::string to_text(const std::vector<BlockRun>& blocks) {
  std::string text;
  for (const BlockRun& each : blocks) text += fmt::format("{}{}x{}", text.empty() ? "" : ",", each.bytes, each.count);
  return text;
}

std::vector<std::uint64_t> block_sizes(const TestSpec& spec) {
  std::vector<std::uint64_t> sizes;
  if (spec.mix.empty()) return sizes;
  for (const BlockRun& each : parse_blocks(spec.mix, flag<&TestSpec::mix>()))
    sizes.insert(sizes.end(), each.count, each.bytes);
  std::mt19937_64 random(1);
  for (std::size_t i = sizes.size(); i > 1; --i) std::swap(sizes[i - 1], sizes[random() % i]);
  return sizes;
}

std::uint64_t largest_bytes(const TestSpec& spec) {
  if (spec.mix.empty()) return spec.size_bytes;
  std::uint64_t largest = 0;
  for (const BlockRun& each : parse_blocks(spec.mix, flag<&TestSpec::mix>())) largest = std::max(largest, each.bytes);
  return largest;
}

void check_blocks(const TestSpec& spec) {
  const auto refuse = [](bool typed, const std::string& one, const std::string& other, const char* why) {
    if (typed) throw usage_error(fmt::format("{} and {}: {}", one, other, why), "leave one of them out");
  };
  const std::string places = flag<&TestSpec::random_places>();
  refuse(spec.random_places && spec.verify_seed, places, flag<&TestSpec::verify_seed>(),
         "verified messages have places in order");
  const std::string stride = flag<&TestSpec::stride_bytes>();
  if (spec.stride_bytes > 0 && (spec.stride_bytes % 64 != 0 || spec.stride_bytes < largest_bytes(spec))) {
    throw usage_error(fmt::format("{} {}: is a multiple of 64 bytes, and at least a message of {}", stride,
                                  format_size(spec.stride_bytes), format_size(largest_bytes(spec))));
  }
  if (spec.mix.empty()) return;
  const std::vector<std::uint64_t> sizes = block_sizes(spec);
  const std::uint64_t total = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  if (total != spec.size_bytes * sizes.size()) {
    throw usage_error(fmt::format("{}: {} bytes in {} blocks are not {} on average", flag<&TestSpec::mix>(), total,
                                  sizes.size(), spec.size_bytes));
  }
  const std::string list = flag<&TestSpec::post_list>();
  if (static_cast<std::size_t>(spec.post_list) != sizes.size()) {
    throw usage_error(
        fmt::format("{} and {} {}: the list has {} blocks", flag<&TestSpec::mix>(), list, spec.post_list, sizes.size()),
        fmt::format("leave {} out", list));
  }
  const std::uint64_t once = sizes.size() * static_cast<std::uint64_t>(spec.qps);
  if (spec.stop.iterations && *spec.stop.iterations % once != 0) {
    throw usage_error(fmt::format("{} {}: each QP sends whole lists of {} blocks", stop_flag<&StopRule::iterations>(),
                                  *spec.stop.iterations, sizes.size()),
                      fmt::format("give a multiple of {}", once));
  }
  refuse(spec.verify_seed.has_value(), flag<&TestSpec::mix>(), flag<&TestSpec::verify_seed>(),
         "verified messages are of one size");
  if (spec.test.operation == Operation::kAtomic)
    throw usage_error(fmt::format("{}: an atomic has 8 bytes", flag<&TestSpec::mix>()), "leave it out");
  refuse(spec.sges > 1, flag<&TestSpec::mix>(), flag<&TestSpec::sges>(), "each block is one piece");
  refuse(spec.transport == Transport::kUd, flag<&TestSpec::mix>(), fmt::format("{} ud", flag<&TestSpec::transport>()),
         "a datagram has an MTU at most");
  refuse(rate_of(spec) > 0, flag<&TestSpec::mix>(), flag<&TestSpec::rate_per_s>(), "lists are sent whole");
  refuse(spec.path == Path::kStaged || spec.consume, flag<&TestSpec::mix>(), flag<&TestSpec::path>(),
         "staging cuts messages itself");
}

}  // namespace gdrperf
