#include "app/plan/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../failure_of.h"

namespace gdrperf::app {
namespace {

using ::testing::HasSubstr;

TEST(LinkModel, TakesWhatTheSoftwareDeviceTakes) {
  const LinkModel model = parse_link_model(
      "# mine\nPIX rate=100Gb/s,latency=1.5us,ack=+1us,header=82,per_message=10ns,slow=1.05,react=1ms\n", "m");
  EXPECT_THAT(model.relations.at(topo::Relation::kPix), HasSubstr("slow=1.05"));
}

TEST(LinkModel, APairMayHaveALinkOfItsOwn) {
  const LinkModel model = parse_link_model("PIX rate=10GB/s\nGPU1:mlx5_3 rate=1GB/s\n", "m");
  const auto pair = [](const char* gpu, const char* nic) {
    topo::Pair made;
    made.gpu = gpu;
    made.nic = nic;
    made.relation = topo::Relation::kPix;
    return made;
  };
  const std::vector<topo::Pair> pairs = {pair("GPU0", "mlx5_3"), pair("GPU1", "mlx5_3"), pair("GPU1", "mlx5_0")};
  EXPECT_EQ(client_device(model, pairs[0]), "pix0");
  EXPECT_EQ(client_device(model, pairs[1]), "pixpair0_0");
  EXPECT_EQ(server_device(model, pairs[1]), "pixpair0_1");
  EXPECT_EQ(client_device(model, pairs[2]), "pix0");
  EXPECT_EQ(softnic_devices(model, pairs, Copy::kAll),
            "pix0:rate=10GB/s;pix1:rate=10GB/s;pixpair0_0:rate=1GB/s;pixpair0_1:rate=1GB/s");
  EXPECT_THAT(failure_of([] { parse_link_model("GPU1 rate=1GB/s\n", "m"); }).what(),
              HasSubstr("m:1: 'GPU1' is no relation"));
}

TEST(LinkModel, AWrongValueIsNamedWithItsLine) {
  for (const char* wrong : {"rate=11", "rate=fast", "latency=2", "latency=-1us", "ack=+", "header=-1", "header=1.5",
                            "header=9999", "slow=0", "slow=x", "react=120s", "rate=", "lat=2us"}) {
    const std::string text = std::string("# links\nPXB rate=1GB/s\nPIX ") + wrong + "\n";
    EXPECT_THAT(failure_of([&] { parse_link_model(text, "links.txt"); }).what(), HasSubstr("links.txt:3: ")) << wrong;
  }
}

}  // namespace
}  // namespace gdrperf::app
