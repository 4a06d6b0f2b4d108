// Files that say what is sent, on hostile text: parse_block_file(), parse_blocks() and parse_payload() throw
// gdrperf::Error that names the option, or yield blocks whose mean is whole and which their own text gives again, or
// whole words.
#include <cstdlib>
#include <string_view>

#include "app/test/payload.h"
#include "fuzz.h"
#include "gdrperf/base/error.h"
#include "gdrperf/proto/blocks.h"

namespace {

void check_blocks_read(const std::vector<gdrperf::BlockRun>& asked) {
  const std::uint64_t count = gdrperf::count_of(asked);
  if (count == 0 || count > gdrperf::kMostBlocks) std::abort();
  std::uint64_t mean = 0;
  const auto blocks = gdrperf::with_whole_mean(asked, mean);
  gdrperf::TestSpec spec;
  spec.mix = gdrperf::to_text(blocks);
  std::uint64_t total = 0;
  const std::vector<std::uint64_t> sizes = gdrperf::block_sizes(spec);
  for (const std::uint64_t bytes : sizes) total += bytes;
  if (sizes.size() != count || total != mean * count || gdrperf::largest_bytes(spec) < mean) std::abort();
}

template <typename Parse>
void expect_named(std::string_view option, Parse parse) {
  try {
    parse();
  } catch (const gdrperf::Error& error) {
    if (!std::string_view(error.what()).starts_with(option)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  expect_named("--blocks", [&] { check_blocks_read(gdrperf::parse_block_file(text, "x.txt")); });
  expect_named("--blocks", [&] { check_blocks_read(gdrperf::parse_blocks(text, "--blocks")); });
  expect_named("--payload x.txt", [&] {
    const std::vector<std::uint8_t> bytes = gdrperf::app::parse_payload(text, "x.txt");
    if (bytes.empty() || bytes.size() % 4 != 0) std::abort();
  });
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {"# sizes of a trace\n64 300\n4K\t150\n\n1M 2 # few\n", "32Kx512", "4Kx100,64Kx10,1M",
          "0xaaaaaaaa,0xbbbbbbbb, 0x1\n0xDEADBEEF"};
}
