#include "engine/watch/peer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>

namespace gdrperf::engine {
namespace {

TEST(Peer, GivesAMessageThatWasPutBackToWhoeverLooksNext) {
  auto [here, there] = proto::local_channel_pair();
  Peer peer(here, nullptr);
  there.send(proto::Stop{{7}});
  std::optional<proto::Message> message;
  while (!message) message = peer.poll_now_and_then();
  peer.put_back(std::move(*message));
  // At once: an interval later it could be the same one who took it before.
  message = peer.poll_now_and_then();
  ASSERT_TRUE(message);
  EXPECT_EQ(std::get<proto::Stop>(*message).messages, std::vector<std::uint64_t>{7});
  EXPECT_FALSE(peer.poll_now_and_then()) << "it is given out once";
}

/// A client whose run is on, as its server sees it.
struct Served {
  explicit Served(bool others) : others_wait(others) {
    server.begin_run({std::chrono::nanoseconds{0}, [this] { return others_wait; }, std::chrono::milliseconds(60)});
  }
  /// Looks for twice the limit; why it ended, or "".
  std::string looked(const std::function<void()>& meanwhile) {
    try {
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(150);
      while (std::chrono::steady_clock::now() < until) {
        meanwhile();
        server.poll();
      }
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  std::pair<proto::Channel, proto::Channel> ends = proto::local_channel_pair();
  bool others_wait;
  std::uint64_t steps = 0;
  Peer server{ends.first, nullptr};
};

TEST(Peer, ARunWithoutProgressIsEndedWhileOthersWait) {
  Served served(true);
  EXPECT_NE(served.looked([&] {
                    served.ends.second.send(proto::Alive{0, 0, "", 7});
                  })
                .find("made no progress for 0.06 s while others wait"),
            std::string::npos);
}

TEST(Peer, ARunWithoutProgressGoesOnWhileNobodyWaits) {
  Served served(false);
  EXPECT_EQ(served.looked([&] { served.ends.second.send(proto::Alive{0, 0, "", 7}); }), "");
}

TEST(Peer, ARunThatGoesOnIsNotEnded) {
  Served served(true);
  EXPECT_EQ(served.looked([&] { served.ends.second.send(proto::Alive{0, 0, "", ++served.steps}); }), "");
  Served at_work(true);
  EXPECT_EQ(at_work.looked([&] { at_work.ends.second.send(proto::Alive{0, 0, "filling", 7}); }), "");
}

}  // namespace
}  // namespace gdrperf::engine
