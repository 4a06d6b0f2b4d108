#include "engine/watch/peer.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace gdrperf::engine
