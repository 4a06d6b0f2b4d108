#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "gdrperf/base/error.h"
#include "gdrperf/conn/connector.h"

namespace gdrperf::conn {
namespace {

constexpr const char* kHex = "fe80000000000000ba599ffffe123456";

TEST(GidText, ComesBackWhole) {
  const ibv_gid gid = gid_from_hex(kHex);
  EXPECT_EQ(gid.raw[0], 0xfe);
  EXPECT_EQ(gid.raw[15], 0x56);
  EXPECT_EQ(gid_to_hex(gid), kHex);
}

// It comes from the other end.
TEST(GidText, AnythingElseIsThePeersError) {
  const std::string hex = kHex;
  for (const std::string& bad : {std::string(), hex.substr(1), hex + "0", "g" + hex.substr(1), " " + hex.substr(1)}) {
    try {
      gid_from_hex(bad);
      ADD_FAILURE() << "taken: '" << bad << "'";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kPeer) << bad;
    }
  }
}

}  // namespace
}  // namespace gdrperf::conn
