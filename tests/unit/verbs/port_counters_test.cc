#include "gdrperf/verbs/port_counters.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "../../temporary_folder.h"

namespace gdrperf::verbs {
namespace {

TEST(VerbsPortCounters, BothFoldersAreRead) {
  const TemporaryFolder folder;
  const std::string port = folder.path() + "/ports/1";
  std::filesystem::create_directories(port + "/counters");
  std::filesystem::create_directories(port + "/hw_counters");
  std::ofstream(port + "/counters/symbol_error") << "12\n";
  std::ofstream(port + "/counters/port_xmit_data") << "123456789\n";
  std::ofstream(port + "/hw_counters/out_of_sequence") << "18446744073709551615\n";
  std::ofstream(port + "/hw_counters/packet_seq_err") << "no number\n";
  std::ofstream(port + "/hw_counters/arrival_late_le_64ns") << "5\n";
  const Counters wanted = {
      {"symbol_error", 12}, {"port_xmit_data", 123456789}, {"out_of_sequence", 18446744073709551615u}};
  EXPECT_EQ(read_port_counters(port), wanted);
  EXPECT_TRUE(read_port_counters(folder.path() + "/none").empty());
  EXPECT_TRUE(read_port_counters("../../../etc", 1).empty());
}

TEST(VerbsPortCounters, ErrorsOfThePcieLinkAreSummed) {
  const TemporaryFolder folder;
  const std::string port = folder.path() + "/ports/1";
  std::filesystem::create_directories(port + "/counters");
  std::filesystem::create_directories(folder.path() + "/device");
  std::ofstream(folder.path() + "/device/aer_dev_correctable") << "RxErr 2\nBadTLP 1\nTOTAL_ERR_COR 3\n";
  std::ofstream(folder.path() + "/device/aer_dev_fatal") << "Undefined 0\nTOTAL_ERR_FATAL 0\n";
  const Counters wanted = {{"aer_correctable", 3}, {"aer_fatal", 0}};
  EXPECT_EQ(read_port_counters(port), wanted);
}

TEST(VerbsPortCounters, TroubleIsToldFromTraffic) {
  for (const char* name :
       {"symbol_error", "out_of_sequence", "rx_prio3_pause", "port_xmit_discards", "np_cnp_sent", "aer_correctable"})
    EXPECT_TRUE(counts_trouble(name)) << name;
  for (const char* name : {"port_xmit_data", "port_rcv_packets", "messages", "lifespan"})
    EXPECT_FALSE(counts_trouble(name)) << name;
}

TEST(VerbsPortCounters, OneThatFellOrIsNewDidNotRise) {
  EXPECT_EQ(risen({{"a", 1}, {"b", 5}, {"c", 7}}, {{"a", 4}, {"b", 2}, {"c", 7}, {"d", 9}}), (Counters{{"a", 3}}));
}

}  // namespace
}  // namespace gdrperf::verbs
