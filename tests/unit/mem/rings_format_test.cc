// The bytes of mlx5's requests, written out by hand from the layouts that mlx5dv.h names.
#include "mem/rings/format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

namespace gdrperf::mem::rings {
namespace {

std::string hex_of(const std::array<std::uint32_t, kBlockWords>& words, std::size_t bytes) {
  std::array<std::uint8_t, kBlockBytes> raw{};
  std::memcpy(raw.data(), words.data(), raw.size());
  std::string text;
  constexpr const char* kDigits = "0123456789abcdef";
  for (std::size_t i = 0; i < bytes; ++i) {
    if (i != 0 && i % 4 == 0) text += ' ';
    text += kDigits[raw[i] >> 4];
    text += kDigits[raw[i] & 15];
  }
  return text;
}

Message message_of(Opcode opcode) {
  Message message;
  message.opcode = opcode;
  message.remote = 0x1122334455667788;
  message.rkey = 0xa1b2c3d4;
  message.local = 0x0102030405060708;
  message.lkey = 0x0badcafe;
  message.bytes = 0x1000;
  message.operand = 5;
  message.compare = 9;
  return message;
}

std::string encoded(const Message& message, std::uint64_t index = 0x12345, std::uint32_t qpn = 0xabcdef) {
  std::array<std::uint32_t, kBlockWords> words{};
  const std::uint32_t segments = encode(words.data(), message, index, qpn);
  for (std::size_t i = segments * 4; i < words.size(); ++i) EXPECT_EQ(words[i], 0u) << "behind the request";
  return hex_of(words, segments * 16);
}

TEST(RingFormat, Write) {
  EXPECT_EQ(encoded(message_of(Opcode::kWrite)),
            "00234508 abcdef03 00000000 00000000 "   // index and opcode, QPN and segments, flags, immediate
            "11223344 55667788 a1b2c3d4 00000000 "   // remote address, rkey
            "00001000 0badcafe 01020304 05060708");  // bytes, lkey, local address
}

TEST(RingFormat, WriteWithImmediateSignalledAndFenced) {
  Message message = message_of(Opcode::kWriteImmediate);
  message.signalled = true;
  message.fenced = true;
  message.immediate = 0xdeadbeef;
  EXPECT_EQ(encoded(message),
            "00234509 abcdef03 00000088 deadbeef "
            "11223344 55667788 a1b2c3d4 00000000 "
            "00001000 0badcafe 01020304 05060708");
}

TEST(RingFormat, AnImmediateAloneNamesNoMemoryHere) {
  Message message = message_of(Opcode::kWriteImmediate);
  message.bytes = 0;
  EXPECT_EQ(encoded(message),
            "00234509 abcdef02 00000000 00000000 "
            "11223344 55667788 a1b2c3d4 00000000");
}

TEST(RingFormat, Read) {
  Message message = message_of(Opcode::kRead);
  message.signalled = true;
  EXPECT_EQ(encoded(message),
            "00234510 abcdef03 00000008 00000000 "
            "11223344 55667788 a1b2c3d4 00000000 "
            "00001000 0badcafe 01020304 05060708");
}

TEST(RingFormat, Send) {
  EXPECT_EQ(encoded(message_of(Opcode::kSend)),
            "0023450a abcdef02 00000000 00000000 "
            "00001000 0badcafe 01020304 05060708");
}

TEST(RingFormat, FetchAndAdd) {
  Message message = message_of(Opcode::kFetchAdd);
  message.bytes = 8;
  message.compare = 0;
  EXPECT_EQ(encoded(message),
            "00234512 abcdef04 00000000 00000000 "
            "11223344 55667788 a1b2c3d4 00000000 "
            "00000000 00000005 00000000 00000000 "   // added
            "00000008 0badcafe 01020304 05060708");
}

TEST(RingFormat, CompareAndSwap) {
  Message message = message_of(Opcode::kCompareSwap);
  message.bytes = 8;
  EXPECT_EQ(encoded(message),
            "00234511 abcdef04 00000000 00000000 "
            "11223344 55667788 a1b2c3d4 00000000 "
            "00000000 00000005 00000000 00000009 "   // put in, compared
            "00000008 0badcafe 01020304 05060708");
}

TEST(RingFormat, Nop) { EXPECT_EQ(encoded(message_of(Opcode::kNop)), "00234500 abcdef01 00000000 00000000"); }

TEST(RingFormat, DoorbellIsTheLastRequestsControl) {
  const std::uint64_t bell = doorbell_of(0x10000, 0xabcdef, message_of(Opcode::kWrite));
  std::array<std::uint32_t, kBlockWords> words{};
  std::memcpy(words.data(), &bell, sizeof bell);
  EXPECT_EQ(hex_of(words, 8), "00ffff08 abcdef03");
  words = {record_of(0x10003), cq_record_of(0x1000004)};
  EXPECT_EQ(hex_of(words, 8), "00000003 00000004");
}

std::uint32_t last_word(std::uint16_t place, std::uint8_t kind, std::uint8_t owner) {
  const std::array<std::uint8_t, 4> bytes = {static_cast<std::uint8_t>(place >> 8), static_cast<std::uint8_t>(place), 0,
                                             static_cast<std::uint8_t>(kind << 4 | owner)};
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data(), sizeof word);
  return word;
}

TEST(RingFormat, OwnerBitChangesWithEachLap) {
  constexpr std::uint32_t kMask = 63;
  EXPECT_FALSE(is_there(last_word(0, 15, 1), 0, kMask)) << "as a fresh ring is";
  EXPECT_TRUE(is_there(last_word(0, 0, 0), 0, kMask));
  EXPECT_FALSE(is_there(last_word(0, 0, 0), 64, kMask)) << "of the lap before";
  EXPECT_TRUE(is_there(last_word(0, 0, 1), 64, kMask));
  EXPECT_FALSE(is_there(last_word(0, 15, 1), 64, kMask));
  EXPECT_EQ(kind_of(last_word(0, 13, 1)), Completed::kRequestError);
}

TEST(RingFormat, CompletionsCoverRequestsAcrossTheWrap) {
  EXPECT_EQ(completed_by(last_word(31, 0, 0), 0), 32u);
  EXPECT_EQ(completed_by(last_word(0xffff, 0, 0), 0xfff0), 0x10000u);
  EXPECT_EQ(completed_by(last_word(4, 0, 0), 0xfffe), 0x10005u);
}

TEST(RingFormat, CompletionsOf128BytesEndThem) {
  EXPECT_EQ(completion_offset(0, 7, 6), 0u);
  EXPECT_EQ(completion_offset(9, 7, 6), 64u);
  EXPECT_EQ(completion_offset(0, 7, 7), 64u);
  EXPECT_EQ(completion_offset(8, 7, 7), 64u);
}

}  // namespace
}  // namespace gdrperf::mem::rings
