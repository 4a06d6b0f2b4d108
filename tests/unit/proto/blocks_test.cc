#include "gdrperf/proto/blocks.h"

#include <algorithm>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "told.h"

namespace gdrperf {
namespace {

std::string blocks_read(const std::string& text) {
  std::string read;
  const std::string told = told_by([&] { read = to_text(parse_blocks(text, "--blocks")); });
  return told == "taken" ? read : told;
}

TEST(Blocks, AreSizesAndCounts) {
  const std::pair<const char*, const char*> rows[] = {
      {"32Kx512", "32768x512"},
      {"4Kx100,64Kx10,1M", "4096x100,65536x10,1048576x1"},
      {"1", "1x1"},
      {"2x1", "2x1"},
      {"1G", "1073741824x1"},
      {"1073745920", "1073745920x1"},  // 1 GiB and 4096 bytes: with_whole_mean()
      {"1073745921", "--blocks '1073745921': a block has from 1 byte to 1 GiB"},
      {"0x4", "--blocks '0': a block has from 1 byte to 1 GiB"},
      {"1x4096", "1x4096"},
      {"1x4097", "--blocks 4097: must be from 1 to 4096"},
      {"1x0", "--blocks 0: must be from 1 to 4096"},
      {"1x", "--blocks '': not a number; give one from 1 to 4096"},
      {"1x4095,2", "1x4095,2x1"},
      {"1x4096,2",
       "--blocks: 4097 blocks; a list has 4096 at most | give smaller counts in the same proportion"},
  };
  for (const auto& [text, expected] : rows) EXPECT_EQ(blocks_read(text), expected) << text;
}

std::string file_read(const std::string& content) {
  std::string read;
  const std::string told = told_by([&] { read = to_text(parse_block_file(content, "mix.txt")); });
  return told == "taken" ? read : told;
}

TEST(Blocks, AreReadFromAFile) {
  const std::pair<const char*, const char*> rows[] = {
      {"4K 100\n64K 10\n1M\n", "4096x100,65536x10,1048576x1"},
      {"# sizes\n\n  4K\t100 # most\r\n\t64K   10", "4096x100,65536x10"},
      {"", "--blocks mix.txt: there are no blocks in it | a line is SIZE COUNT"},
      {"# none\n", "--blocks mix.txt: there are no blocks in it | a line is SIZE COUNT"},
      {"4K 1\n4K 1 1\n", "--blocks mix.txt:2: a line is SIZE COUNT"},
      {"4K 1\n\n0 1\n", "--blocks mix.txt:3 '0': a block has from 1 byte to 1 GiB"},
      {"4K 0\n", "--blocks mix.txt:1 0: must be from 1 to 4096"},
      {"4K 4096\n1 2\n", "--blocks mix.txt:2: 4098 blocks; a list has 4096 at most"
                         " | give smaller counts in the same proportion"},
  };
  for (const auto& [content, expected] : rows) EXPECT_EQ(file_read(content), expected) << content;
}

std::vector<std::uint64_t> each_of(const std::vector<BlockRun>& blocks) {
  std::vector<std::uint64_t> sizes;
  for (const BlockRun& run : blocks) sizes.insert(sizes.end(), run.count, run.bytes);
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

// One of the largest blocks is made longer by what the sum lacks to a multiple of the count.
TEST(Blocks, GetAWholeMeanByALongerOne) {
  for (const char* text : {"1x1", "8x4", "1x3,2x1", "5x2,9x3", "9x1,1x6", "7x1,7x2,1x1", "4096x100,65536x10,1048576",
                           "1000x3,1x4", "3x1,2x1", "10x2,10x2,1"}) {
    const std::vector<BlockRun> before = parse_blocks(text, "--blocks");
    std::vector<std::uint64_t> expected = each_of(before);
    while (std::accumulate(expected.begin(), expected.end(), std::uint64_t{0}) % expected.size() != 0)
      ++expected.back();
    std::uint64_t mean = 0;
    const std::vector<BlockRun> after = with_whole_mean(before, mean);
    EXPECT_EQ(each_of(after), expected) << text;
    EXPECT_EQ(mean, std::accumulate(expected.begin(), expected.end(), std::uint64_t{0}) / expected.size()) << text;
    EXPECT_EQ(count_of(after), expected.size()) << text;
    for (const BlockRun& run : after) EXPECT_GT(run.count, 0u) << text;
  }
}

TEST(Blocks, TheFirstOfTheLargestBecomesLonger) {
  std::uint64_t mean = 0;
  EXPECT_EQ(to_text(with_whole_mean(parse_blocks("10x1,10x2,1", "--blocks"), mean)), "10x2,1x1,11x1");
  EXPECT_EQ(to_text(with_whole_mean(parse_blocks("10x2,1,10x1", "--blocks"), mean)), "10x1,1x1,10x1,11x1");
}

// By std::mt19937_64 of seed 1, and Fisher and Yates from the end: runs of any version send the same list.
TEST(Blocks, AreShuffledAlwaysAlike) {
  TestSpec spec;
  EXPECT_EQ(block_sizes(spec), std::vector<std::uint64_t>());
  spec.mix = "1,2,3,4,5,6,7,8";
  EXPECT_EQ(block_sizes(spec), (std::vector<std::uint64_t>{5, 7, 4, 6, 2, 8, 3, 1}));
  spec.mix = "1x2,3x1";
  EXPECT_EQ(each_of(parse_blocks(spec.mix, "")), (std::vector<std::uint64_t>{1, 1, 3}));
}

TEST(Blocks, LargestIsOfTheListOrTheOneSize) {
  TestSpec spec;
  EXPECT_EQ(largest_bytes(spec), 65536u);
  spec.mix = "4Kx3,1M,64Kx2";
  EXPECT_EQ(largest_bytes(spec), 1048576u);
}

struct Listed {
  const char* told;
  void (*put)(TestSpec&);
};

void expect_lists(std::initializer_list<Listed> rows) {
  for (const Listed& row : rows) {
    TestSpec spec;
    spec.mix = "32K,96K";
    spec.post_list = 2;
    row.put(spec);
    EXPECT_EQ(told_by([&] { check_blocks(spec); }), row.told);
  }
}

TEST(Blocks, HaveAListOfTheirOwnLengthAndMean) {
  expect_lists({
      {"taken", [](TestSpec&) {}},
      {"taken", [](TestSpec& s) { s.mix = "", s.post_list = 7; }},
      {"--blocks: 131072 bytes in 2 blocks are not 65535 on average", [](TestSpec& s) { s.size_bytes = 65535; }},
      {"--blocks: 131072 bytes in 2 blocks are not 131072 on average", [](TestSpec& s) { s.size_bytes = 131072; }},
      {"--blocks and -l 1: the list has 2 blocks | leave -l out", [](TestSpec& s) { s.post_list = 1; }},
      {"--blocks and -l 4: the list has 2 blocks | leave -l out", [](TestSpec& s) { s.post_list = 4; }},
      {"taken", [](TestSpec& s) { s.qps = 3, s.stop.iterations = 12; }},
      {"-n 8: each QP sends whole lists of 2 blocks | give a multiple of 6",
       [](TestSpec& s) { s.qps = 3, s.stop.iterations = 8; }},
      {"-n 7: each QP sends whole lists of 2 blocks | give a multiple of 6",
       [](TestSpec& s) { s.qps = 3, s.stop.iterations = 7; }},
  });
}

TEST(Blocks, AreKeptApartInMemory) {
  constexpr const char* kTold64K = "--stride 64 KiB: is a multiple of 64 bytes, and at least a message of 96 KiB";
  expect_lists({
      {"taken", [](TestSpec& s) { s.stride_bytes = 96 * 1024; }},
      {"taken", [](TestSpec& s) { s.stride_bytes = 96 * 1024 + 64; }},
      {kTold64K, [](TestSpec& s) { s.stride_bytes = 65536; }},
      {"--stride 98305 B: is a multiple of 64 bytes, and at least a message of 96 KiB",
       [](TestSpec& s) { s.stride_bytes = 96 * 1024 + 1; }},
      {"taken", [](TestSpec& s) { s.stride_bytes = 65536, s.mix = "", s.random_places = true; }},
      {"--stride 65600 B: is a multiple of 64 bytes, and at least a message of 128 KiB",
       [](TestSpec& s) { s.stride_bytes = 65600, s.size_bytes = 131072, s.mix = ""; }},
      {"taken", [](TestSpec& s) { s.verify_seed = 1, s.mix = ""; }},
      {"--random-places and --seed: verified messages have places in order | leave one of them out",
       [](TestSpec& s) { s.verify_seed = 1, s.mix = "", s.random_places = true; }},
  });
}

TEST(Blocks, GoWithPlainTransfersAlone) {
  expect_lists({
      {"--blocks and --seed: verified messages are of one size | leave one of them out",
       [](TestSpec& s) { s.verify_seed = 1; }},
      {"--blocks: an atomic has 8 bytes | leave it out",
       [](TestSpec& s) { s.test.operation = Operation::kAtomic; }},
      {"--blocks and --sge: each block is one piece | leave one of them out", [](TestSpec& s) { s.sges = 2; }},
      {"--blocks and --transport ud: a datagram has an MTU at most | leave one of them out",
       [](TestSpec& s) { s.transport = Transport::kUd; }},
      {"--blocks and --rate: lists are sent whole | leave one of them out", [](TestSpec& s) { s.rate_per_s = 1; }},
      {"--blocks and --path: staging cuts messages itself | leave one of them out",
       [](TestSpec& s) { s.path = Path::kStaged; }},
      {"--blocks and --path: staging cuts messages itself | leave one of them out",
       [](TestSpec& s) { s.consume = true; }},
  });
}

}  // namespace
}  // namespace gdrperf
