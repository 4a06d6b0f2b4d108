#include "cluster/counters.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "../temporary_folder.h"
#include "cluster/hosts.h"
#include "gdrperf/base/error.h"

namespace gdrperf::app {
namespace {

TEST(ClusterCounters, OnlyThoseOfErrorsAreRead) {
  const TemporaryFolder folder;
  const std::string port = folder.path() + "/ports/1";
  std::filesystem::create_directories(port + "/counters");
  std::filesystem::create_directories(port + "/hw_counters");
  std::ofstream(port + "/counters/symbol_error") << "12\n";
  std::ofstream(port + "/counters/port_xmit_data") << "123456789\n";
  std::ofstream(port + "/hw_counters/out_of_sequence") << "18446744073709551615\n";
  std::ofstream(port + "/hw_counters/packet_seq_err") << "no number\n";
  const std::map<std::string, std::uint64_t> wanted = {{"symbol_error", 12}, {"out_of_sequence", 18446744073709551615u}};
  EXPECT_EQ(read_error_counters(port), wanted);
  EXPECT_TRUE(read_error_counters(folder.path() + "/none").empty());
  EXPECT_TRUE(error_counters_of("../../../etc").empty());
}

TEST(ClusterHosts, NamesPortsAndBrackets) {
  const auto hosts = parse_hosts("n1,n2:19000,[fd00::1]:19001,fd00::2,[fd00::3]", 18515);
  ASSERT_EQ(hosts.size(), 5u);
  EXPECT_EQ(hosts[0].port, 18515);
  EXPECT_EQ(hosts[1].host, "n2");
  EXPECT_EQ(hosts[1].port, 19000);
  EXPECT_EQ(hosts[2].host, "fd00::1");
  EXPECT_EQ(hosts[2].port, 19001);
  EXPECT_EQ(hosts[3].host, "fd00::2");
  EXPECT_EQ(hosts[4].host, "fd00::3");
  for (const char* text : {"n1,n1", "n1:0", "n1:x", "", ":5", "n1,,n2"}) EXPECT_THROW(parse_hosts(text, 18515), Error) << text;
}

}  // namespace
}  // namespace gdrperf::app
