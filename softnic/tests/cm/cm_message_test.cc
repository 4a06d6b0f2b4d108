// The messages of the communication manager: what is written is read again, and nothing else is.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "cm/wire/message.h"

namespace gdrperf::softnic {
namespace {

CmMessage some_request() {
  CmMessage message;
  message.kind = CmKind::kRequest;
  message.port_space = 0x106;
  message.from = 7;
  message.source.family = AF_INET;
  message.source.bytes = {127, 0, 0, 1};
  message.source.port = 40000;
  message.destination = message.source;
  message.destination.port = 7174;
  message.gid.raw[15] = 3;
  message.qp_number = 0x123456;
  message.psn = 0xfedcba;
  message.mtu = IBV_MTU_4096;
  message.retry_count = 7;
  message.private_bytes = 5;
  message.private_data = {'h', 'e', 'l', 'l', 'o'};
  return message;
}

TEST(SoftnicCmMessage, WhatIsWrittenIsReadAgain) {
  const CmMessage message = some_request();
  const auto read = decode(encode(message));
  ASSERT_TRUE(read);
  EXPECT_EQ(encode(*read), encode(message));
  EXPECT_EQ(read->destination.port, 7174);
  EXPECT_EQ(read->qp_number, 0x123456u);
  EXPECT_EQ(read->private_data, message.private_data);
}

TEST(SoftnicCmMessage, TheLongestFits) {
  CmMessage message = some_request();
  message.private_bytes = kMaxPrivateData;
  EXPECT_LE(encode(message).size(), kMaxCmBytes);
  EXPECT_TRUE(decode(encode(message)));
}

TEST(SoftnicCmMessage, APartOfOneIsNone) {
  const std::vector<std::uint8_t> whole = encode(some_request());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(decode(std::span(whole).first(size))) << size;
  }
  std::vector<std::uint8_t> more = whole;
  more.push_back(0);
  EXPECT_FALSE(decode(more));
}

TEST(SoftnicCmMessage, FieldsOutOfRangeAreRefused) {
  const auto refused = [](auto change) {
    CmMessage message = some_request();
    change(message);
    return !decode(encode(message));
  };
  EXPECT_TRUE(refused([](CmMessage& it) { it.kind = static_cast<CmKind>(0); }));
  EXPECT_TRUE(refused([](CmMessage& it) { it.kind = static_cast<CmKind>(9); }));
  EXPECT_TRUE(refused([](CmMessage& it) { it.mtu = 0; }));
  EXPECT_TRUE(refused([](CmMessage& it) { it.mtu = 6; }));
  EXPECT_TRUE(refused([](CmMessage& it) { it.qp_number = 0x1000000; }));
  EXPECT_TRUE(refused([](CmMessage& it) { it.psn = 0x1000000; }));
  EXPECT_TRUE(refused([](CmMessage& it) { it.retry_count = 8; }));
  EXPECT_TRUE(refused([](CmMessage& it) { it.rnr_retry_count = 8; }));
  EXPECT_TRUE(refused([](CmMessage& it) { it.private_bytes = kMaxPrivateData + 1; }));
  EXPECT_TRUE(refused([](CmMessage& it) { it.destination.family = AF_UNSPEC; }));
  EXPECT_TRUE(refused([](CmMessage& it) { it.source.family = AF_UNIX; }));
}

/// Bytes changed at random: what is read is in range all the same.
TEST(SoftnicCmMessage, ChangedBytesAreReadInRangeOrNotAtAll) {
  std::mt19937 random(20260101);
  const std::vector<std::uint8_t> whole = encode(some_request());
  int read = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::vector<std::uint8_t> bytes = whole;
    for (unsigned n = random() % 4; n > 0; --n) bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
    if (random() % 8 == 0) bytes.resize(random() % (2 * bytes.size()));
    const auto message = decode(bytes);
    if (!message) continue;
    ++read;
    ASSERT_LE(message->private_bytes, kMaxPrivateData);
    ASSERT_LE(message->qp_number, 0xffffffu);
    ASSERT_EQ(encode(*message), bytes);
  }
  EXPECT_GT(read, 1000);
}

}  // namespace
}  // namespace gdrperf::softnic
