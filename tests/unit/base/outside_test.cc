// Text from outside and errors: what reaches people and shells is harmless, whatever it was made from.

#include "gdrperf/base/outside.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>

#include "gdrperf/base/error.h"

namespace gdrperf {
namespace {

const std::string kHostile = "m\033]0;owned\a\r\nx\xe2\x80\xae$(reboot)`reboot`'\";reboot";

bool harmless(const std::string& text) { return text == printable_lines(text) && text.find('\a') == text.npos; }

/// What a shell makes of `word` as one argument.
std::string by_shell(const std::string& word) {
  const std::string command = "printf %s " + word;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string out;
  for (int c = std::fgetc(pipe.get()); c != EOF; c = std::fgetc(pipe.get())) out += static_cast<char>(c);
  return out;
}

TEST(Outside, IsPrintedWithoutControls) {
  EXPECT_TRUE(harmless(printable(Outside(kHostile))));
  EXPECT_EQ(printable(Outside("mlx5_0")), "mlx5_0");
  EXPECT_EQ(printable(Outside("Größe")), "Größe");
}

TEST(Outside, IsComparedAsItIs) {
  const Outside name = std::string("mlx5_0");
  EXPECT_TRUE(name == "mlx5_0");
  EXPECT_TRUE(name == std::string("mlx5_0"));
  EXPECT_TRUE(name == Outside("mlx5_0"));
  EXPECT_TRUE(name != "mlx5_1");
  EXPECT_TRUE(Outside() < name);
  EXPECT_EQ(Outside(kHostile).raw(), kHostile);
}

TEST(Outside, PlainNamesAreShellWordsAsTheyAre) {
  for (const char* name :
       {"mlx5_0", "ens1f0np0", "0000:3b:00.0", "eth0.100", "eth0:1", "/dev/infiniband/uverbs0", "sshd@1.service"}) {
    EXPECT_EQ(shell_word(name), name);
  }
}

TEST(Outside, OneWordToAShell) {
  for (const char* name : {"", " ", "a b", "$(echo x)", "`echo x`", "a;echo x", "a'b", "'", "''", "a\"b", "\\", "*",
                           "~", "a>b", "#a", "{a,b}", "-n"}) {
    EXPECT_EQ(by_shell(shell_word(name)), name) << shell_word(name);
  }
  EXPECT_EQ(by_shell(shell_word(kHostile)), printable(Outside(kHostile)));
}

TEST(ErrorText, IsPrintable) {
  const Error error(ExitCode::kPeer, "server said: " + kHostile, "try " + kHostile);
  EXPECT_TRUE(harmless(error.what()));
  EXPECT_TRUE(harmless(error.hint()));
  EXPECT_TRUE(harmless(error.in(kHostile).what()));
  EXPECT_EQ(std::string(Error(ExitCode::kUsage, "two\nlines").what()), "two\nlines");
}

}  // namespace
}  // namespace gdrperf
