#include "app/intervals/metrics_connections.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <list>

#include "gdrperf/base/unique_fd.h"

namespace gdrperf::app {
namespace {

using Time = MetricsConnections::Time;

/// A connection and its client.
struct Pair {
  Pair() {
    std::array<int, 2> fds{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
    own = UniqueFd(fds[0]);
    client = UniqueFd(fds[1]);
  }
  bool shut() const {
    pollfd entry{client.get(), POLLRDHUP, 0};
    return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP)) != 0;
  }
  UniqueFd own;
  UniqueFd client;
};

TEST(MetricsConnections, ARequestThatDripsIsShutDownByItsAge) {
  MetricsConnections connections;
  const Pair one;
  const Pair later;
  const Time start{};
  connections.opened(one.own.get(), "10.0.0.1", start);
  connections.opened(later.own.get(), "10.0.0.1", start + std::chrono::seconds(3));
  connections.expire(start + MetricsConnections::kMostTime - std::chrono::milliseconds(1));
  EXPECT_FALSE(one.shut());
  connections.expire(start + MetricsConnections::kMostTime);
  EXPECT_TRUE(one.shut());
  EXPECT_FALSE(later.shut());
}

TEST(MetricsConnections, TheOldestOfAnAddressMakesRoomAndNoOther) {
  MetricsConnections connections;
  const Pair other;
  connections.opened(other.own.get(), "10.0.0.2", {});
  std::list<Pair> many;
  for (std::size_t i = 0; i < MetricsConnections::kMostOfAddress + 2; ++i) {
    connections.opened(many.emplace_back().own.get(), "10.0.0.1", {});
  }
  auto it = many.begin();
  EXPECT_TRUE((it++)->shut());
  EXPECT_TRUE((it++)->shut());
  EXPECT_FALSE(it->shut());
  EXPECT_FALSE(many.back().shut());
  EXPECT_FALSE(other.shut());
}

TEST(MetricsConnections, WhatWasClosedIsNotShutDown) {
  MetricsConnections connections;
  const Pair one;
  connections.opened(one.own.get(), "10.0.0.1", {});
  connections.closed(one.own.get());
  connections.expire(Time{} + std::chrono::hours(1));
  EXPECT_FALSE(one.shut());
}

}  // namespace
}  // namespace gdrperf::app
