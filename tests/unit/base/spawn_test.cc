#include "gdrperf/base/spawn.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/unique_fd.h"

namespace gdrperf {
namespace {

Spawn shell(const std::string& command) {
  return {.file = "/bin/sh", .argv = {"sh", "-c", command}, .environment = own_environment()};
}

/// Whether posix_spawn() returns when the program has begun or could not. Emulated by qemu-user it returns earlier, as
/// vfork() is fork() there.
bool spawn_waits() {
  char name[] = "program";
  char* words[] = {name, nullptr};
  char* nothing[] = {nullptr};
  pid_t child = -1;
  const int error = ::posix_spawn(&child, "/no/such/program", nullptr, nullptr, words, nothing);
  if (error == 0) ::waitpid(child, nullptr, 0);
  return error != 0;
}
constexpr const char* kEarly = "posix_spawn() returns before the program has begun (qemu-user)";

TEST(Spawn, TheWaitStatusIsTheChilds) {
  const int left = wait_for(spawn(shell("exit 7")));
  ASSERT_TRUE(WIFEXITED(left));
  EXPECT_EQ(WEXITSTATUS(left), 7);
  const int killed = wait_for(spawn(shell("kill -9 $$")));
  ASSERT_TRUE(WIFSIGNALED(killed));
  EXPECT_EQ(WTERMSIG(killed), 9);
}

TEST(Spawn, OutputEnvironmentAndGroupAreThoseAskedFor) {
  if (!spawn_waits()) GTEST_SKIP() << kEarly;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  Spawn program = shell("cat; echo \"$GREETING\"");
  program.environment.emplace_back("GREETING=hello");
  program.empty_input = true;
  program.output = writing.get();
  program.own_group = true;
  const pid_t child = spawn(program);
  EXPECT_EQ(::getpgid(child), child);
  wait_for(child);
  writing.reset();
  std::array<char, 256> text;
  const ssize_t count = ::read(reading.get(), text.data(), text.size());
  ASSERT_GT(count, 0);
  EXPECT_THAT(std::string(text.data(), static_cast<std::size_t>(count)), testing::StrEq("hello\n"));
}

TEST(Spawn, AChildGetsSignalsThatThisProcessIgnoresOrBlocks) {
  sigset_t blocked;
  sigset_t before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  auto* const handler = ::signal(SIGPIPE, SIG_IGN);
  const int piped = wait_for(spawn(shell("kill -PIPE $$; exit 7")));
  const int ended = wait_for(spawn(shell("kill -TERM $$; exit 7")));
  ::signal(SIGPIPE, handler);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(WIFSIGNALED(piped));
  EXPECT_EQ(WTERMSIG(piped), SIGPIPE);
  ASSERT_TRUE(WIFSIGNALED(ended));
  EXPECT_EQ(WTERMSIG(ended), SIGTERM);
}

TEST(Spawn, AProgramThatIsNotThereIsAnErrorThatNamesIt) {
  if (!spawn_waits()) GTEST_SKIP() << kEarly;
  try {
    spawn({.file = "/no/such/program", .argv = {"program"}, .environment = {}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kEnvironment);
    EXPECT_THAT(error.what(), testing::HasSubstr("/no/such/program"));
  }
}

}  // namespace
}  // namespace gdrperf
