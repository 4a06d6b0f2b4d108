#include "cluster/wire/tree.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "cluster/wire/wire.h"
#include "gdrperf/base/error.h"

namespace gdrperf::app {
namespace {

TEST(ClusterTree, ThirtyTwoHangOnEach) {
  const std::vector<int> parents = tree_parents(10000, 32);
  EXPECT_EQ(parents[0], -1);
  EXPECT_EQ(parents[32], 0);
  EXPECT_EQ(parents[33], 1);
  EXPECT_EQ(parents[64], 1);
  EXPECT_EQ(parents[65], 2);
  std::vector<int> children(parents.size(), 0);
  int deepest = 0;
  for (std::size_t i = 1; i < parents.size(); ++i) {
    ++children[static_cast<std::size_t>(parents[i])];
    int depth = 0;
    for (int at = static_cast<int>(i); at > 0; at = parents[static_cast<std::size_t>(at)]) ++depth;
    deepest = std::max(deepest, depth);
  }
  EXPECT_EQ(*std::max_element(children.begin(), children.end()), 32);
  EXPECT_EQ(deepest, 3);
}

TEST(ClusterTree, ABundleComesBackWhole) {
  std::string text = begin_bundle(std::chrono::milliseconds(1500));
  add_to_bundle(7, "{\"a\": 1}", text);
  add_to_bundle(1048576, "", text);
  add_to_bundle(0, "3 4 many ", text);
  ASSERT_TRUE(is_bundle(text));
  const Bundle bundle = read_bundle(text);
  EXPECT_EQ(bundle.patience.count(), 1500);
  const std::vector<std::pair<int, std::string_view>> wanted = {{7, "{\"a\": 1}"}, {1048576, ""}, {0, "3 4 many "}};
  EXPECT_EQ(bundle.texts, wanted);
}

TEST(ClusterTree, GarbledBundlesAreRefused) {
  for (const char* text :
       {"", "many", "many ", "many x ", "many 5 1", "many 5 1 10 short", "many 5 99999999999999999999 1 a",
        "many 5 2000000 1 a", "many 5 -1 1 a", "many 5 1 18446744073709551615 a"}) {
    EXPECT_THROW(read_bundle(text), Error) << text;
  }
}

TEST(ClusterTree, MessagesComeBackWhole) {
  const auto again = [](const ClusterMessage& message) {
    return decode_cluster_text(encode_cluster_text(message), "peer");
  };
  const ClusterMessage relay = again(BecomeRelay{{{3, {4, 5}}, {6, {}}}});
  EXPECT_EQ(std::get<BecomeRelay>(relay).children.at(0).below, (std::vector<int>{4, 5}));
  EXPECT_EQ(std::get<BecomeRelay>(relay).children.at(1).rank, 6);
  EXPECT_EQ(std::get<Attach>(again(Attach{"10.0.0.1", 4711})).port, 4711);
  EXPECT_EQ(std::get<Joined>(again(Joined{2, {9}})).missing, std::vector<int>{9});
  Measure order;
  order.id = 3;
  order.latency = true;
  order.runs = {{"10.0.0.2", 4711, "mlx5_0", "mlx5_1", "cuda:0", "host"}};
  const ClusterMessage measure = again(order);
  EXPECT_EQ(std::get<Measure>(measure).runs.at(0).peer_device, "mlx5_1");
  EXPECT_EQ(std::get<Measure>(measure).runs.at(0).buffer, "cuda:0");
  EXPECT_EQ(std::get<Measure>(measure).runs.at(0).peer_buffer, "host");
  EXPECT_TRUE(std::get<Measure>(measure).latency);
  const ClusterMessage rates = again(Rates{3, {{48.5, 0, ""}, {0, 2.5, "why"}}});
  EXPECT_EQ(std::get<Rates>(rates).rates.at(0).gbytes, 48.5);
  EXPECT_EQ(std::get<Rates>(rates).rates.at(1).latency_us, 2.5);
  EXPECT_EQ(std::get<Rates>(rates).rates.at(1).error, "why");
  CardDevice device;
  device.name = "mlx5_3";
  device.driver = "mlx5_core";
  const Ports ports = std::get<Ports>(again(Ports{{4711}, {device}}));
  EXPECT_EQ(ports.ports.at(0), 4711);
  EXPECT_EQ(ports.devices.at(0).driver, "mlx5_core");
  EXPECT_EQ(std::get<Invite>(again(Invite{2, 9, 3.5})).deadline_s, 3.5);
  EXPECT_EQ(std::get<Counters>(again(Counters{{{{"symbol_error", 12}}}})).devices.at(0).at("symbol_error"), 12u);
  EXPECT_THROW(decode_cluster_text("{\"cluster\":\"rates\",\"id\":1,\"rates\":[[1,0,\"\"]]}", "peer"), Error)
      << "not as JSON";
  EXPECT_EQ(std::get<Lost>(again(Lost{"no answer"})).why, "no answer");
}

Measure order_of_links(std::size_t count) {
  Measure order;
  order.id = 70000;
  order.size_bytes = std::uint64_t{1} << 40;
  order.duration_ns = 250'000'000;
  for (std::size_t i = 0; i < count; ++i) {
    order.runs.push_back({"10.1.2.3", static_cast<int>(40000 + i), "mlx5_" + std::to_string(i),
                          "mlx5_" + std::to_string(i), "host", "host"});
  }
  return order;
}

TEST(ClusterTree, ARoundIsAFewBytesALink) {
  const std::string order = encode_cluster_text(order_of_links(8));
  EXPECT_LT(order.size(), 340u) << "each name once";
  const Measure again = std::get<Measure>(decode_cluster_text(order, "peer"));
  EXPECT_EQ(again.id, 70000);
  EXPECT_EQ(again.size_bytes, std::uint64_t{1} << 40);
  EXPECT_EQ(again.duration_ns, 250'000'000);
  ASSERT_EQ(again.runs.size(), 8u);
  EXPECT_EQ(again.runs[7].host, "10.1.2.3");
  EXPECT_EQ(again.runs[7].port, 40007);
  EXPECT_EQ(again.runs[7].device, "mlx5_7");
  EXPECT_LT(encode_cluster_text(Rates{1, std::vector<ClusterRate>(8, {48.7, 0, ""})}).size(), 110u);
}

TEST(ClusterTree, GarbledRoundsAreRefused) {
  for (const std::string& whole :
       {encode_cluster_text(order_of_links(2)), encode_cluster_text(Rates{1, {{1, 0, "why"}, {2, 0, ""}}})}) {
    for (std::size_t length = 1; length < whole.size(); ++length) {
      EXPECT_THROW(decode_cluster_text(whole.substr(0, length), "peer"), Error) << length << " bytes";
    }
    EXPECT_THROW(decode_cluster_text(whole + "x", "peer"), Error);
    // Any byte may be wrong: refused, or some other message, but no more.
    for (std::size_t at = 1; at < whole.size(); ++at) {
      std::string other = whole;
      other[at] = static_cast<char>(~other[at]);
      try {
        decode_cluster_text(other, "peer");
      } catch (const Error&) {
      }
    }
  }
}

TEST(ClusterTree, WhatAPeerSaysIsPrintable) {
  const ClusterMessage rates = decode_cluster_text(encode_cluster_text(Rates{1, {{0, 0, "a\x1b[2Jb"}}}), "peer");
  EXPECT_EQ(std::get<Rates>(rates).rates.at(0).error.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace gdrperf::app
