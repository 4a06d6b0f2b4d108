#include <gtest/gtest.h>

#include "cluster/ranks/hosts.h"
#include "gdrperf/base/error.h"

namespace gdrperf::app {
namespace {

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
  for (const char* text : {"n1,n1", "n1:0", "n1:x", "", ":5", "n1,,n2"})
    EXPECT_THROW(parse_hosts(text, 18515), Error) << text;
}

}  // namespace
}  // namespace gdrperf::app
