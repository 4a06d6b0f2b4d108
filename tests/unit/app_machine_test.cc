#include "machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../failure_of.h"

namespace gdrperf::app {
namespace {

using ::testing::HasSubstr;

TEST(LinkModel, TakesWhatTheSoftwareDeviceTakes) {
  const LinkModel model =
      parse_link_model("# mine\nPIX rate=100Gb/s,latency=1.5us,ack=+1us,header=82,per_message=10ns,slow=1.05,react=1ms\n",
                       "m");
  EXPECT_THAT(model.at(topo::Relation::kPix), HasSubstr("slow=1.05"));
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
