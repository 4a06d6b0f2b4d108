#include "gdrperf/engine/resolve.h"

#include <type_traits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrperf/base/error.h"

#include <bit>

#include "engine/transfer/laps.h"

namespace gdrperf::engine {
namespace {

using ::testing::HasSubstr;

/// Why it is refused, or "nothing".
std::string refusal(const TestSpec& spec) {
  try {
    resolve(spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(Resolve, IsIdempotentAndSound) {
  for (std::uint64_t size = 1; size <= (64u << 20); size = size * 3 + 1) {
    for (const int post_list : {1, 3, 32}) {
      for (const int cq_mod : {0, 1, 100}) {
        TestSpec spec;
        spec.size_bytes = size;
        spec.post_list = post_list;
        spec.cq_mod = cq_mod;
        const ResolvedSpec once = resolve(spec);
        EXPECT_EQ(resolve(once), once);
        EXPECT_GE(once.tx_depth, once.post_list);
        EXPECT_NO_THROW(validate(once));
        EXPECT_GE(once.cq_mod, 1);
        EXPECT_LE(once.cq_mod, once.tx_depth);
        EXPECT_EQ(once.cq_mod % once.post_list, 0) << size << ' ' << post_list << ' ' << cq_mod;
        const Layout layout = once.layout();
        EXPECT_TRUE(std::has_single_bit(layout.slots));
        EXPECT_GE(layout.stride, size);
        EXPECT_EQ(layout.stride % 64, 0u);
      }
    }
  }
}

TEST(Resolve, EachMessageInFlightHasAPlaceOfItsOwnByDefault) {
  TestSpec spec;
  spec.size_bytes = 64;
  spec.test.operation = Operation::kSend;
  EXPECT_EQ(resolve(spec).layout().slots, 128u);
  spec.srq = true;
  EXPECT_EQ(resolve(spec).layout().slots, 512u) << "a message may take any of the receives";
  spec.size_bytes = 1u << 20;
  EXPECT_EQ(resolve(spec).layout().slots, 4u) << "4 MiB at most";
}

TEST(Resolve, KeepsThePipeFullByDefault) {
  TestSpec spec;
  spec.size_bytes = 64;
  EXPECT_EQ(resolve(spec).tx_depth, 128);
  EXPECT_EQ(resolve(spec).cq_mod, 32);
  spec.size_bytes = 8u << 20;
  EXPECT_EQ(resolve(spec).tx_depth, 8);
  EXPECT_EQ(resolve(spec).cq_mod, 1);
}

TEST(Resolve, DepthFollowsWhatIsAskedOfCqModAndPostList) {
  TestSpec spec;
  spec.size_bytes = 8u << 20;
  spec.cq_mod = 100;
  EXPECT_EQ(resolve(spec).tx_depth, 100);
  EXPECT_EQ(resolve(spec).cq_mod, 100);
  EXPECT_EQ(resolve(resolve(spec)), resolve(spec));
  spec.size_bytes = 64;
  EXPECT_EQ(resolve(spec).tx_depth, 128);
  spec.cq_mod = 200;
  spec.post_list = 3;
  EXPECT_EQ(resolve(spec).tx_depth, 201);
  EXPECT_EQ(resolve(spec).cq_mod, 201);
}

TEST(Resolve, ALapHasASlotForEveryMessage) {
  for (const Operation operation : {Operation::kWrite, Operation::kSend, Operation::kRead}) {
    for (const std::uint64_t size : {1ull, 8192ull, 1ull << 20, 64ull << 20}) {
      for (const int cq_mod : {0, 1, 5, 100}) {
        for (const int rx_depth : {1, 7, 512}) {
          TestSpec spec;
          spec.test.operation = operation;
          spec.size_bytes = size;
          spec.cq_mod = cq_mod;
          spec.rx_depth = rx_depth;
          spec.verify_seed = 1;
          const ResolvedSpec once = resolve(spec);
          EXPECT_EQ(resolve(once), once);
          const LapShape lap = lap_shape(once);
          EXPECT_TRUE(std::has_single_bit(lap.slots));
          EXPECT_LE(lap.messages, lap.slots);
          EXPECT_GT(2 * lap.messages, lap.slots);
          EXPECT_EQ(lap.messages % static_cast<std::uint64_t>(once.cq_mod), 0u);
        }
      }
    }
  }
}

TEST(Layout, ALargeFootprintIsReachedWithGaps) {
  TestSpec spec;
  spec.size_bytes = 8;
  spec.footprint_bytes = 1u << 30;
  const Layout layout = resolve(spec).layout();
  EXPECT_LE(layout.slots, 65536u);
  EXPECT_EQ(layout.qp_bytes(), 1u << 30);
}

static_assert(!std::is_constructible_v<ResolvedSpec, TestSpec> && !std::is_default_constructible_v<ResolvedSpec>,
              "resolve() alone makes one");

TEST(Resolve, IsWhereARequestIsJudged) {
  const auto refusal = [](auto spoil) -> std::string {
    TestSpec spec;
    spoil(spec);
    try {
      resolve(spec);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(refusal([](TestSpec&) {}), "");
  EXPECT_THAT(refusal([](TestSpec& spec) { spec.qps = 0; }), testing::StartsWith("-q 0: a test has from 1 to"));
  EXPECT_THAT(refusal([](TestSpec& spec) { spec.server.buffer = "disk"; }), testing::StartsWith("--peer-buffer"));
  EXPECT_THAT(refusal([](TestSpec& spec) { spec.path = Path::kStaged; }),
              testing::StartsWith("--path staged: neither client nor server"));
  EXPECT_THAT(refusal([](TestSpec& spec) { spec.path = Path::kStaged, spec.client.buffer = "cuda:0", spec.qps = 2; }),
              testing::StartsWith("-q 2: --path staged keeps one QP busy"));
  const auto paced = [](TestSpec& spec) {
    spec.test.metric = Metric::kLatency;
    spec.client.buffer = "staged:0";
    spec.rate_per_s = 1000;
  };
  EXPECT_EQ(refusal(paced), "--rate 1000: staged memory starts a round, or a chunk, when the last is through");
}

TEST(Resolve, SaysHowDataTravels) {
  TestSpec spec;
  spec.test = {Operation::kWrite, Metric::kLatency};
  EXPECT_FALSE(resolve(spec).ends_by_immediate());
  spec.server.buffer = "cuda:0";
  EXPECT_TRUE(resolve(spec).ends_by_immediate());
  EXPECT_EQ(resolve(spec).data_path(), DataPath::kStreaming);
  spec.server.buffer = "staged:0";
  const ResolvedSpec staged = resolve(spec);
  EXPECT_EQ(staged.data_path(), DataPath::kStaging);
  EXPECT_TRUE(staged.staged(conn::Side::kServer));
  EXPECT_FALSE(staged.staged(conn::Side::kClient));
  spec.test = {Operation::kSend, Metric::kBandwidth};
  EXPECT_FALSE(resolve(spec).lands_in_receives()) << "chunks have a place of their own";
  spec.server.buffer = "host";
  EXPECT_TRUE(resolve(spec).lands_in_receives());
  spec.test.operation = Operation::kWriteImm;
  EXPECT_FALSE(resolve(spec).lands_in_receives());
}

TEST(Resolve, RelaxesTheOrderButWhereTheLastByteIsPolledFor) {
  TestSpec spec;
  for (const Operation operation : {Operation::kWrite, Operation::kSend, Operation::kRead}) {
    spec.test = {operation, Metric::kBandwidth};
    EXPECT_TRUE(resolve(spec).relaxes_ordering());
    spec.test.metric = Metric::kLatency;
    EXPECT_EQ(resolve(spec).relaxes_ordering(), operation != Operation::kWrite);
  }
  spec.ordering = Ordering::kStrict;
  EXPECT_FALSE(resolve(spec).relaxes_ordering());
  spec.test = {Operation::kWrite, Metric::kLatency};
  spec.ordering = Ordering::kRelaxed;
  EXPECT_THROW(resolve(spec), Error);
  // Its rounds end with a completion then.
  spec.server.buffer = "cuda:0";
  EXPECT_TRUE(resolve(spec).relaxes_ordering());
}

TEST(Resolve, AKernelOnTheGpuWaitsForTheLastByte) {
  TestSpec spec;
  spec.test = {Operation::kWrite, Metric::kLatency};
  spec.server.buffer = "cuda:0";
  EXPECT_TRUE(resolve(spec).ends_by_immediate());
  spec.initiator = Initiator::kGpuProxy;
  const ResolvedSpec resolved = resolve(spec);
  EXPECT_FALSE(resolved.ends_by_immediate());
  EXPECT_TRUE(resolved.polls_last_byte());
  EXPECT_FALSE(resolved.relaxes_ordering());
  EXPECT_TRUE(resolved.relays(conn::Side::kServer));
  EXPECT_FALSE(resolved.relays(conn::Side::kClient));
}

TEST(Resolve, AKernelPostsWhereItsMemoryIs) {
  TestSpec spec;
  spec.initiator = Initiator::kGpu;
  EXPECT_THAT(refusal(spec),
              HasSubstr("--initiator gpu: the memory that messages leave from, or answers come to, is not in a GPU"));
  spec.client.buffer = "cuda:0";
  EXPECT_TRUE(resolve(spec).posts_to_rings(conn::Side::kClient));
  EXPECT_FALSE(resolve(spec).posts_to_rings(conn::Side::kServer));
  spec.gpu_scope = GpuScope::kWarp;
  EXPECT_THAT(refusal(spec), HasSubstr("--gpu-scope warp: --gpu-threads 1 is no multiple of 32"));
  spec.gpu_threads = 64;
  EXPECT_EQ(refusal(spec), "nothing");
  spec.transport = Transport::kUc;
  EXPECT_THAT(refusal(spec), HasSubstr("--initiator gpu and --transport: the threads write requests of RC"));
  spec.transport = Transport::kRc;
  spec.initiator = Initiator::kCpu;
  EXPECT_THAT(refusal(spec), HasSubstr("--gpu-threads: no kernel posts messages"));
  spec.gpu_threads = 1;
  spec.gpu_scope = GpuScope::kThread;
  spec.initiator = Initiator::kCpuRings;
  EXPECT_THAT(
      refusal(spec),
      HasSubstr("--initiator cpu-rings: the memory that messages leave from, or answers come to, is not in the host"));
  spec.client.buffer = "host";
  spec.server.buffer = "cuda:0";
  EXPECT_EQ(refusal(spec), "nothing");
  spec.test = {Operation::kWrite, Metric::kLatency};
  EXPECT_TRUE(resolve(spec).ends_by_immediate());
  spec.initiator = Initiator::kGpu;
  EXPECT_TRUE(resolve(spec).polls_last_byte());
  EXPECT_TRUE(resolve(spec).posts_to_rings(conn::Side::kServer));
}

TEST(Resolve, WhatNoKernelCanWaitForIsRefused) {
  TestSpec spec;
  spec.initiator = Initiator::kGpuProxy;
  spec.test = {Operation::kWrite, Metric::kLatency};
  EXPECT_THAT(refusal(spec), HasSubstr("--initiator gpu-proxy: client and server both use host memory"));
  spec.server.buffer = "cuda:0";
  EXPECT_EQ(refusal(spec), "nothing");
  spec.path = Path::kStaged;
  EXPECT_THAT(refusal(spec), HasSubstr("staged through host memory"));
  spec.path = Path::kDirect;
  spec.test = {Operation::kSend, Metric::kLatency};
  EXPECT_THAT(refusal(spec), HasSubstr("send_lat does not wait for a message's last byte"));
}

}  // namespace
}  // namespace gdrperf::engine
