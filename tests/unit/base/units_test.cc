#include "gdrperf/base/units.h"

#include <cmath>

#include <gtest/gtest.h>

#include "gdrperf/base/error.h"

namespace gdrperf {
namespace {

using std::chrono::nanoseconds;

TEST(ParseSize, TakesUnitsInEitherCase) {
  EXPECT_EQ(parse_size("0", "-s"), 0u);
  EXPECT_EQ(parse_size("65536", "-s"), 65536u);
  EXPECT_EQ(parse_size("4k", "-s"), 4096u);
  EXPECT_EQ(parse_size("4K", "-s"), 4096u);
  EXPECT_EQ(parse_size("8MiB", "-s"), 8u << 20);
  EXPECT_EQ(parse_size("1g", "-s"), 1u << 30);
  EXPECT_EQ(parse_size("1.5K", "-s"), 1536u);
  EXPECT_EQ(parse_size("18446744073709551615", "-s"), ~0ull);
}

TEST(ParseSize, RefusesAndNamesTheFlag) {
  for (const char* bad : {"", "abc", "-1", "4kb", "4 k", "0.3", "1e3", "0x10", "99999999999G", "nan"}) {
    try {
      parse_size(bad, "--size");
      ADD_FAILURE() << "accepted '" << bad << "'";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      EXPECT_NE(std::string(error.what()).find("--size '" + std::string(bad) + "'"), std::string::npos)
          << error.what();
    }
  }
}

TEST(ParseDuration, TakesUnits) {
  EXPECT_EQ(parse_duration("2s", "-D"), nanoseconds(2'000'000'000));
  EXPECT_EQ(parse_duration("2", "-D"), nanoseconds(2'000'000'000));
  EXPECT_EQ(parse_duration("500MS", "-D"), nanoseconds(500'000'000));
  EXPECT_EQ(parse_duration("0.5us", "-D"), nanoseconds(500));
  EXPECT_EQ(parse_duration("2m", "-D"), std::chrono::minutes(2));
  for (const char* bad : {"", "s", "-1s", "2 s", "5x", "1e30h"}) {
    EXPECT_THROW(parse_duration(bad, "-D"), Error) << bad;
  }
}

TEST(ParseSizeList, RangesAndItems) {
  using V = std::vector<std::uint64_t>;
  EXPECT_EQ(parse_size_list("64", "-s"), (V{64}));
  EXPECT_EQ(parse_size_list("2:16:x2", "-s"), (V{2, 4, 8, 16}));
  EXPECT_EQ(parse_size_list("2:20:x2", "-s"), (V{2, 4, 8, 16, 20}));
  EXPECT_EQ(parse_size_list("1K:3K:+1K", "-s"), (V{1024, 2048, 3072}));
  EXPECT_EQ(parse_size_list("64,1,64,2:4:x2", "-s"), (V{1, 2, 4, 64}));
  EXPECT_EQ(parse_size_list("2:8M:x2", "-s").size(), 23u);
  for (const char* bad : {"", ",", "1,", "2:8", "8:2:x2", "0:8:x2", "2:8:x1", "2:8:+0", "2:8:2", "1:9000000:+1"}) {
    EXPECT_THROW(parse_size_list(bad, "-s"), Error) << bad;
  }
}

TEST(Format, SizesAndTimes) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(3), "3 B");
  EXPECT_EQ(format_size(65536), "64 KiB");
  EXPECT_EQ(format_size(8u << 20), "8 MiB");
  EXPECT_EQ(format_size(65537), "65537 B");
  EXPECT_EQ(format_duration_ns(1500), "1.5 us");
  EXPECT_EQ(format_duration_ns(78e12), "78000 s");
}

TEST(Format, DigitsAsPeopleWriteThem) {
  EXPECT_EQ(plain_digits(0), "0");
  EXPECT_EQ(plain_digits(1910, 3), "1910");
  EXPECT_EQ(plain_digits(78e6, 3), "78000000");
  EXPECT_EQ(plain_digits(0.0019984), "0.001998");
  EXPECT_EQ(plain_digits(1.5e-7, 3), "0.00000015");
  EXPECT_EQ(plain_digits(0.1), "0.1");
  EXPECT_EQ(plain_digits(-2.5, 3), "-2.5");
  EXPECT_EQ(plain_digits(std::nan("")), "-");
  EXPECT_EQ(four_digits(1), "1.000");
  EXPECT_EQ(four_digits(12345.6), "12346");
  EXPECT_EQ(four_digits(3.337e-6), "0.0000033");
  EXPECT_EQ(four_digits(1.2e-9), "<0.000001");
  EXPECT_EQ(about_size(999), "999 B");
  EXPECT_EQ(about_size(1024), "1 KiB");
  EXPECT_EQ(about_size(16u << 20), "16 MiB");
  EXPECT_EQ(about_size(1), "1 B");
}

}  // namespace
}  // namespace gdrperf
