#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "gdrperf/mem/buffer.h"

namespace gdrperf::mem {
namespace {

constexpr std::size_t kHugepage = 2u << 20;

/// Flags of the mapping that `address` lies in, as /proc/self/smaps lists them; "": there is none.
std::string flags_of(const std::byte* address) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool inside = false;
  while (std::getline(maps, line)) {
    std::uintptr_t from = 0;
    std::uintptr_t to = 0;
    char dash = 0;
    std::istringstream range(line);
    if (range >> std::hex >> from >> dash >> to && dash == '-') {
      inside = from <= reinterpret_cast<std::uintptr_t>(address) && reinterpret_cast<std::uintptr_t>(address) < to;
    }
    if (inside && line.starts_with("VmFlags:")) return line + " ";
  }
  return "";
}

TEST(HostBuffer, LargeOnesAreOfHugePagesWhereTheKernelGivesThem) {
  for (const std::size_t bytes : {kHugepage, 3 * kHugepage + 12'345}) {
    const auto buffer = make_buffer("host", bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % kHugepage, 0u);
    EXPECT_EQ(buffer->size(), bytes);
    EXPECT_EQ(buffer->data()[0], std::byte{0});
    buffer->data()[bytes - 1] = std::byte{7};
    if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"))
      GTEST_SKIP() << "this kernel has no transparent huge pages";
    if (std::getenv("GDRPERF_EMULATED") != nullptr) GTEST_SKIP() << "qemu-user does not pass MADV_HUGEPAGE on";
    EXPECT_NE(flags_of(buffer->data()).find(" hg "), std::string::npos) << flags_of(buffer->data());
  }
}

TEST(HostBuffer, ALargeOneIsUnmappedWhole) {
  constexpr std::size_t kBytes = 2 * kHugepage + 1;
  std::byte* from = nullptr;
  {
    const auto buffer = make_buffer("host", kBytes);
    from = buffer->data();
    EXPECT_NE(flags_of(from), "");
  }
  EXPECT_EQ(flags_of(from), "");
  EXPECT_EQ(flags_of(from + kBytes - 1), "");
}

TEST(HostBuffer, SmallOnesTakeNoMoreThanTheyNeed) {
  const auto buffer = make_buffer("host", 4096);
  EXPECT_EQ(flags_of(buffer->data()).find(" hg "), std::string::npos);
  buffer->data()[4095] = std::byte{1};
}

}  // namespace
}  // namespace gdrperf::mem
