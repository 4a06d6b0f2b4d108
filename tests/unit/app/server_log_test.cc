#include "app/server/server_log.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrperf/base/unique_fd.h"

namespace gdrperf::app {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct Pipe {
  Pipe() {
    int fds[2];
    EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
    out.reset(fds[0]);
    in.reset(fds[1]);
  }
  std::string read_all() const {
    EXPECT_EQ(::fcntl(out.get(), F_SETFL, O_NONBLOCK), 0);
    std::string text;
    std::array<char, 4096> block;
    for (ssize_t got; (got = ::read(out.get(), block.data(), block.size())) > 0;) {
      text.append(block.data(), static_cast<std::size_t>(got));
    }
    return text;
  }
  UniqueFd out;
  UniqueFd in;
};

TEST(ServerLog, WhatAPeerCallsItselfObeysNobody) {
  Pipe pipe;
  ServerLog(pipe.in.get()).line("serving \x1b]0;owned\x07 on \xc2\x9b\x32J\nhint: go on");
  EXPECT_EQ(pipe.read_all(), "gdrperf: serving \xef\xbf\xbd]0;owned\xef\xbf\xbd on \xef\xbf\xbd\x32J\nhint: go on\n");
}

TEST(ServerLog, AFullPipeLosesLinesAndCountsThem) {
  const Pipe pipe;
  ServerLog log(pipe.in.get());
  const std::string text(1000, 'x');
  for (int i = 0; i < 200; ++i) log.line(text);  // a pipe holds 64 KiB: this would wait for ever
  const std::string first = pipe.read_all();
  EXPECT_EQ(first.back(), '\n');
  log.line("again");
  EXPECT_THAT(pipe.read_all(), ::testing::MatchesRegex("gdrperf: [0-9]+ lines of this log lost: nobody read them\n"
                                                       "gdrperf: again\n"));
}

TEST(ServerLog, AClosedPipeAndAClosedDescriptorAreNoFailure) {
  ::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  pipe.out.reset();
  ServerLog(pipe.in.get()).line("nobody");
  ServerLog(-1).line("nobody");
}

TEST(ServerLog, LongLinesAreCut) {
  const Pipe pipe;
  ServerLog(pipe.in.get()).line(std::string(100'000, 'y'));
  EXPECT_EQ(pipe.read_all().size(), 4096u);
}

TEST(Strangers, AreCountedNotListed) {
  DroppedConnections dropped;
  const DroppedConnections::Time start{100s};
  EXPECT_EQ(dropped.note("one", start), "dropped a connection: one");
  for (int i = 0; i < 500; ++i) EXPECT_EQ(dropped.note("two", start + 1s), "");
  EXPECT_TRUE(dropped.pending());
  EXPECT_EQ(dropped.due(start + 2s), "");
  EXPECT_EQ(dropped.due(start + DroppedConnections::kInterval),
            "dropped 500 connections that were no clients, the last: two");
  EXPECT_FALSE(dropped.pending());
  EXPECT_EQ(dropped.rest(), "");
}

}  // namespace
}  // namespace gdrperf::app
