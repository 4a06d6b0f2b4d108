#include "engine/session/peer_clock.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

namespace gdrperf::engine {
namespace {

constexpr double kAheadNs = 5e9;

/// A server whose clock is 5 s ahead. It waits before it reads it: `waits_ns`, one for each question, and the last for
/// all that follow.
struct Clock {
  explicit Clock(std::vector<double> waits) : waits_ns(std::move(waits)), thread([this] { answer(); }) {}
  ~Clock() {
    // Tells it that there are no more.
    client.send(proto::Stop{});
    thread.join();
  }

  void answer() {
    Peer server(ends.second, nullptr);
    while (true) {
      const proto::Message message = server.answer("start");
      const auto* ping = std::get_if<proto::Ping>(&message);
      if (ping == nullptr) return;
      wait_until(now_ns() + waits_ns[std::min<std::size_t>(asked++, waits_ns.size() - 1)]);
      server.send(proto::Pong{ping->token, now_ns() + kAheadNs});
    }
  }

  std::pair<proto::Channel, proto::Channel> ends = proto::local_channel_pair();
  Peer client{ends.first, nullptr};
  std::vector<double> waits_ns;
  std::atomic<std::size_t> asked = 0;
  std::thread thread;
};

void expect_right(const PeerClock& clock) {
  EXPECT_LE(clock.ahead_ns - clock.unsure_ns, kAheadNs);
  EXPECT_GE(clock.ahead_ns + clock.unsure_ns, kAheadNs);
}

TEST(PeerClock, IsOfTheQuickestAnswer) {
  Clock server({20e6, 20e6, 0, 0, 0, 0, 20e6});
  const PeerClock clock = clock_of(server.client);
  expect_right(clock);
  EXPECT_LT(clock.unsure_ns, 10e6);
}

TEST(PeerClock, OfABusyServerIsAskedForLonger) {
  std::vector<double> waits_ns(9, 0.5e6);
  waits_ns.push_back(0);
  Clock server(waits_ns);
  const double begin_ns = now_ns();
  expect_right(clock_of(server.client));
  // It gives up after 50 ms.
  EXPECT_TRUE(server.asked >= 10 || now_ns() - begin_ns > 50e6);
}

TEST(PeerClock, SaysHowWellItIsKnown) {
  Clock server({20e6});
  const PeerClock clock = clock_of(server.client);
  expect_right(clock);
  EXPECT_GE(clock.unsure_ns, 10e6);
  EXPECT_EQ(server.asked, 8u) << "what is slow is not asked for ever";
}

}  // namespace
}  // namespace gdrperf::engine
