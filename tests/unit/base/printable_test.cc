#include "gdrperf/base/printable.h"

#include <gtest/gtest.h>

namespace gdrperf {
namespace {

constexpr const char* kGone = "\xef\xbf\xbd";

TEST(Printable, KeepsWhatPeopleWrite) {
  for (const char* text : {"", "GPU0:mlx5_0/65536", "µs ± 95 % · Zürich 東京 🚀", "a\\b|c`d"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, NothingReachesTheTerminalThatMovesItsCursorOrTurnsText) {
  for (const char* text : {"\x1b", "\r", "\n", "\t", "\x07", "\x7f", "\xc2\x9b" /* CSI as C1 */,
                           "\xe2\x80\xae" /* RLO */, "\xe2\x81\xa6", "\xe2\x80\xa8"}) {
    EXPECT_EQ(printable(text), kGone) << text;
  }
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a" + std::string(kGone) + "b");
  EXPECT_EQ(printable("\x1b[2J\x1b]0;title\x07"), std::string(kGone) + "[2J" + kGone + "]0;title" + kGone);
  EXPECT_EQ(printable_lines("one\ntwo\r\n"), "one\ntwo" + std::string(kGone) + "\n");
}

TEST(Printable, BytesThatAreNoUtf8AreReplacedOneByOne) {
  EXPECT_EQ(printable("\xff\xfe"), std::string(kGone) + kGone);
  EXPECT_EQ(printable("\xc0\xaf"), std::string(kGone) + kGone) << "overlong";
  EXPECT_EQ(printable("\xed\xa0\x80"), std::string(kGone) + kGone + kGone) << "a surrogate";
  EXPECT_EQ(printable("x\xe2\x82"), "x" + std::string(kGone) + kGone) << "cut off";
}

TEST(Markdown, NothingIsTakenForMarkup) {
  EXPECT_EQ(markdown_text("a|b\n<img src=x> [l](u) *x* `c` @me & ~~s~~"),
            "a\\|b" + std::string(kGone) +
                "&lt;img src=x&gt; \\[l\\](u) \\*x\\* \\`c\\` &#64;me &amp; \\~\\~s\\~\\~");
  EXPECT_EQ(markdown_code("a`b|c\n"), "`a?b\\|c" + std::string(kGone) + "`");
}

}  // namespace
}  // namespace gdrperf
