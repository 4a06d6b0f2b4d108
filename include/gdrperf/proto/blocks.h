#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/proto/spec.h"

// Blocks: messages that are posted as one list again and again, each of a size of its own.
namespace gdrperf {

/// So many of one size.
struct BlockRun {
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
};

inline constexpr std::uint64_t kMostBlocks = 4096;

/// "32Kx512" or "4Kx100,64Kx10,1M". Throws usage_error naming `flag`: no sizes, no counts, more than kMostBlocks.
std::vector<BlockRun> parse_blocks(const std::string& text, std::string_view flag);
/// A histogram: lines of SIZE COUNT, '#' begins a comment. Throws usage_error naming `file` and the line.
std::vector<BlockRun> parse_block_file(const std::string& content, const std::string& file);

std::uint64_t count_of(const std::vector<BlockRun>& blocks);
/// The blocks, the largest of which has become so much longer (less than as many bytes as there are blocks) that the
/// mean is a whole number of bytes, which comes back in `mean_bytes`.
std::vector<BlockRun> with_whole_mean(std::vector<BlockRun> blocks, std::uint64_t& mean_bytes);
/// As TestSpec::mix.
std::string to_text(const std::vector<BlockRun>& blocks);

/// The sizes of one list of a test in their order, which is shuffled and always the same; empty: all are of one size.
std::vector<std::uint64_t> block_sizes(const TestSpec& spec);
/// Of a test's messages.
std::uint64_t largest_bytes(const TestSpec& spec);

/// Throws usage_error where blocks, their places or distances cannot be.
void check_blocks(const TestSpec& spec);

}  // namespace gdrperf
