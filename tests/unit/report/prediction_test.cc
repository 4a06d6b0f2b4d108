#include "gdrperf/report/prediction.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gdrperf/report/reference.h"

namespace gdrperf::report {
namespace {

using topo::Ceiling;
using topo::Relation;

TEST(Published, FiguresAreThoseOfTheFile) {
  const char* root = std::getenv("GDRPERF_SOURCE_ROOT");
  ASSERT_NE(root, nullptr);
  const auto file = nlohmann::json::parse(std::ifstream(std::string(root) + "/results/reference/gpudirect-rdma.json"));
  const std::set<std::string> infiniband = {"HDR 200 Gb/s", "EDR 100 Gb/s", "NDR 400 Gb/s", "FDR/EDR era"};
  ASSERT_EQ(file.at("figures").size(), published_figures().size());
  for (std::size_t at = 0; at < published_figures().size(); ++at) {
    const nlohmann::json& each = file.at("figures")[at];
    const PublishedFigure& figure = published_figures()[at];
    const auto text = [&](const char* key) {
      return each.contains(key) && !each[key].is_null() ? each[key].get<std::string>() : "";
    };
    const auto number = [&](const char* key) {
      return each.contains(key) && !each[key].is_null() ? each[key].get<double>() : 0;
    };
    const auto yes = [&](const char* key) {
      return each.contains(key) && each[key].is_boolean() && each[key].get<bool>();
    };
    EXPECT_EQ(figure.machine, text("machine")) << at;
    EXPECT_EQ(figure.link_gbps, number("link_gbps")) << at;
    EXPECT_EQ(figure.gbytes, number("gbytes_per_s")) << at;
    EXPECT_EQ(figure.gpu_pcie_gen, number("gpu_pcie_gen")) << at;
    EXPECT_EQ(figure.direction, text("direction")) << at;
    EXPECT_EQ(figure.gpudirect_rdma, yes("gpudirect_rdma")) << at;
    EXPECT_EQ(figure.fault, yes("fault")) << at;
    EXPECT_EQ(figure.infiniband, infiniband.contains(text("link"))) << text("link");
  }
}

TEST(Published, OneResultIsNotSeveral) {
  EXPECT_EQ(standing("SYS", 400, 15.45),
            "Published for SYS at 400 Gb/s: 15.4 to 15.4 GB/s, 1 result; 15.4 GB/s here is above 1 of them "
            "(results/reference).");
  EXPECT_EQ(standing("PXB", 100, 11.5),
            "Published for PXB at 100 Gb/s: 11 to 11.5 GB/s, 2 results; 11.5 GB/s here is above 1 of them "
            "(results/reference).");
}

TEST(Published, ALinkRateThatNobodyPublishedIsSaid) {
  const std::string any = standing("SYS", 0, 12.345);
  const std::string unknown = "at any link rate (this one's is not known)";
  ASSERT_EQ(any.find("Published for SYS " + unknown + ": 0.3 to "), 0u) << any;
  EXPECT_NE(any.find("; 12.3 GB/s here is above "), std::string::npos) << any;
  for (const auto& [rate, words] : {std::pair(0.5, "at other link rates (none at 0.5 Gb/s)"),
                                    std::pair(800.0, "at other link rates (none at 800 Gb/s)")}) {
    EXPECT_EQ(standing("SYS", rate, 12.345), "Published for SYS " + std::string(words) + any.substr(any.find(": 0.3")));
  }
}

TEST(Ceilings, ThePortOrTheGpusLinkIsTheLimit) {
  constexpr double kSpeeds[] = {2.5, 5, 8, 16, 32, 64};  // GT/s of a lane, generations 1 to 6
  PublishedFigure figure;
  EXPECT_FALSE(ceiling_of(figure)) << "without a rate";
  figure.gpu_pcie_gen = 4;
  EXPECT_FALSE(ceiling_of(figure));
  figure.link_gbps = 10000;
  for (int generation = 1; generation <= 6; ++generation) {
    figure.gpu_pcie_gen = generation;
    topo::PathHop hop;
    hop.now = hop.max = {kSpeeds[generation - 1], 16};
    const auto ceiling = ceiling_of(figure);
    ASSERT_TRUE(ceiling);
    EXPECT_DOUBLE_EQ(ceiling->gbps, topo::hop_payload_gbps(hop)) << generation;
    EXPECT_EQ(ceiling->limited_by, "gen" + std::to_string(generation) + " x16");
  }
  topo::TreeNic nic;
  nic.rate_gbps = 100;
  figure.link_gbps = 100;
  const double port = topo::port_ceiling(nic)->gbps;
  for (const int generation : {0, 4, 6, 7}) {
    figure.gpu_pcie_gen = generation;
    EXPECT_DOUBLE_EQ(ceiling_of(figure)->gbps, port) << generation;
  }
}

/// Shares of their maximum that published figures of such pairs reached, by their words.
std::vector<double> shares_by_words(const std::set<std::string>& words, const std::string& direction) {
  std::vector<double> shares;
  for (const PublishedFigure& each : published_figures()) {
    const bool fits = std::any_of(each.relations.begin(), each.relations.end(),
                                  [&](const std::string& one) { return words.contains(one); });
    const bool direct = direction.empty() || each.direction.empty() || each.direction == direction;
    if (fits && direct && each.gpudirect_rdma && !each.fault && each.gbytes > 0 && ceiling_of(each)) {
      shares.push_back(each.gbytes * 8 / ceiling_of(each)->gbps);
    }
  }
  std::sort(shares.begin(), shares.end());
  return shares;
}

TEST(Predictions, AreTheSharesThatPublishedFiguresOfTheClassReached) {
  const std::pair<Relation, std::set<std::string>> kClasses[] = {{Relation::kPix, {"PIX", "PXB"}},
                                                                 {Relation::kPxb, {"PIX", "PXB"}},
                                                                 {Relation::kPhb, {"PHB", "NODE"}},
                                                                 {Relation::kNode, {"PHB", "NODE"}},
                                                                 {Relation::kSys, {"SYS"}}};
  const std::pair<MemoryAccess, const char*> kAccesses[] = {
      {MemoryAccess::kEither, ""}, {MemoryAccess::kNicReads, "read"}, {MemoryAccess::kNicWrites, "write"}};
  for (const auto& [relation, words] : kClasses) {
    for (const auto& [access, direction] : kAccesses) {
      const std::vector<double> shares = shares_by_words(words, direction);
      const auto prediction = predict(relation, Ceiling{200, "port"}, access);
      ASSERT_TRUE(prediction);
      ASSERT_EQ(prediction->figures, shares.size());
      ASSERT_GT(shares.size(), 3u);
      EXPECT_EQ(prediction->ceiling.gbps, 200);
      EXPECT_DOUBLE_EQ(prediction->lowest_gbps, 200 * shares.front());
      EXPECT_DOUBLE_EQ(prediction->least_gbps, 200 * shares.front() * 0.95);
      EXPECT_DOUBLE_EQ(prediction->highest_gbps, 200 * shares.back());
      EXPECT_DOUBLE_EQ(prediction->median_gbps, 200 * shares[shares.size() / 2]);
      EXPECT_EQ(prediction->bound, relation > Relation::kPxb);
    }
  }
}

TEST(Predictions, TheirTextsAreInGigabytes) {
  Prediction prediction;
  prediction.ceiling = {400, "port"};
  prediction.figures = 9;
  prediction.least_gbps = 320;
  prediction.median_gbps = 360;
  prediction.lowest_gbps = 80;
  prediction.highest_gbps = 200;
  EXPECT_EQ(range_text(prediction), "40.0 to 50.0");
  EXPECT_EQ(sureness_text(prediction, Relation::kPix),
            "likely: 9 results published for one PCIe switch reached at least 80 % of their maximum (a margin of 5 % "
            "included), "
            "half of them 90 % or more");
  prediction.bound = true;
  prediction.figures = 1;
  EXPECT_EQ(range_text(prediction), "at most 50.0, published 10.0 to 25.0");
  EXPECT_EQ(sureness_text(prediction, Relation::kSys),
            "links do not predict SYS: 1 published results reached 20 to 50 % of their maximum; their median would "
            "be 45.0 GB/s here");
  prediction.figures = 0;
  EXPECT_EQ(range_text(prediction), "at most 50.0");
  EXPECT_EQ(sureness_text(prediction, Relation::kNode), "no results are published for NODE");
  prediction.bound = false;
  EXPECT_EQ(range_text(prediction), "40.0 to 50.0");
}

}  // namespace
}  // namespace gdrperf::report
