#include "gdrperf/page/cluster_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gdrperf::page {
namespace {

using testing::HasSubstr;

TEST(ClusterPage, OnePartInTwoSeriesIsOneFinding) {
  const auto suspect = [](const char* series, const char* shift, const char* nic) {
    return std::string(R"({"series":")") + series + R"(","part":"nic","verdict":"slow","rank":0,"nic":)" + nic +
           R"(,"rail":0,"way":"both","shift_percent":-1,"retests":9,"measurements":18,"retest_shift_percent":)" +
           shift + "}";
  };
  const std::string text = R"({"schema":"gdrperf-cluster/1","verdict":"slow","nics":[
    {"rank":0,"host":"n0","device":"mlx5_0","rail":0},{"rank":1,"host":"n1","device":"mlx5_0","rail":0}],"suspects":[)" +
                           suspect("bandwidth", "-20", "0") + "," + suspect("latency", "-50", "0") + "," +
                           suspect("bandwidth", "-10", "1") + "]}";
  const PageCluster cluster = parse_cluster_page(text, "x.json");
  EXPECT_EQ(cluster.slow, 2u);
  ASSERT_EQ(cluster.findings.size(), 2u);
  EXPECT_THAT(cluster.findings[0].text, HasSubstr("-20.0 % compared with the others, confirmed by retests"));
  EXPECT_THAT(cluster.findings[0].text, HasSubstr("; also +100.0 % compared with the others in latency"));
  EXPECT_THAT(cluster.findings[1].text, HasSubstr("-10.0 %"));
}

}  // namespace
}  // namespace gdrperf::page
