#include "gdrperf/base/terminal.h"

#include "gdrperf/base/printable.h"

#include <stdlib.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace gdrperf {
namespace {

TEST(Wrapped, BreaksAtBlanksAndHangs) {
  EXPECT_EQ(wrapped("one two three", 8, 2), "one two\n  three");
  EXPECT_EQ(wrapped("  warning: one two", 12, 4), "  warning:\n    one two");
  EXPECT_EQ(wrapped("a\n\nbb cc dd", 5, 2), "a\n\nbb cc\n  dd");
  EXPECT_EQ(wrapped("size   rate", 80, 2), "size   rate") << "columns keep their blanks";
}

TEST(Wrapped, LeavesAloneWhatCannotBeBroken) {
  EXPECT_EQ(wrapped("aaa fe80::1234:5678 b", 6, 2), "aaa\n  fe80::1234:5678\n  b");
  EXPECT_EQ(wrapped("one two three", 0, 2), "one two three") << "no terminal";
  EXPECT_EQ(wrapped("", 10, 2), "");
}

TEST(Wrapped, CountsCharactersAndNotBytes) { EXPECT_EQ(wrapped("x ▁▂▃▄ y", 8, 2), "x ▁▂▃▄ y"); }

TEST(Styled, OnlyWithColour) {
  EXPECT_EQ(styled(Colour::kOff, Style::kBad, "x"), "x");
  EXPECT_EQ(styled(Colour::kOn, Style::kBad, "x"), "\033[31mx\033[0m");
  EXPECT_EQ(styled(Colour::kOn, Style::kBad, ""), "");
}

TEST(Colour, AskedForIsNotArguedWith) {
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_EQ(colour_for(STDOUT_FILENO, ColourChoice::kAlways), Colour::kOn);
  ::unsetenv("NO_COLOR");
  EXPECT_EQ(colour_for(STDOUT_FILENO, ColourChoice::kNever), Colour::kOff);
}

TEST(Locale, FirstOneThatIsSetDecides) {
  ::setenv("LANG", "en_US.UTF-8", 1);
  ::unsetenv("LC_CTYPE");
  ::setenv("LC_ALL", "C", 1);
  EXPECT_FALSE(locale_takes_utf8());
  ::setenv("LC_ALL", "", 1);
  EXPECT_TRUE(locale_takes_utf8());
}

TEST(TerminalText, KeepsOwnStylesAndNothingElseThatMovesTheCursor) {
  for (const Style style : {Style::kBold, Style::kDim, Style::kGood, Style::kDoubtful, Style::kBad}) {
    const std::string text = "a\t" + styled(Colour::kOn, style, "b µs") + "\n";
    EXPECT_EQ(terminal_text(text), text);
  }
  const std::string gone = "\xef\xbf\xbd";
  EXPECT_EQ(terminal_text("x\x1b[8mhidden\x1b[0m"), "x" + gone + "[8mhidden\x1b[0m");
  EXPECT_EQ(terminal_text("\x1b"), gone);
  EXPECT_EQ(terminal_text("\x1b\x1b[1m\x1b]0;t\x07"), gone + "\x1b[1m" + gone + "]0;t" + gone);
  EXPECT_EQ(terminal_text("\r\n"), gone + "\n");
  EXPECT_EQ(terminal_text(""), "");
}

}  // namespace
}  // namespace gdrperf
