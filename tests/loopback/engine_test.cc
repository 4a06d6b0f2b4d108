// Both ends of a run in one process, over whatever device there is: the first
// with an active port, or the one named by GDRPERF_TEST_DEVICE.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gdrperf/base/error.h"
#include "gdrperf/engine/session.h"
#include "gdrperf/proto/channel.h"
#include "gdrperf/proto/operation.h"
#include "gdrperf/verbs/device.h"

namespace gdrperf::engine {
namespace {

using namespace std::chrono_literals;

std::string device_name() {
  const char* name = std::getenv("GDRPERF_TEST_DEVICE");
  return name ? name : "";
}

bool device_present() {
  try {
    const auto context = verbs::Context::open(device_name());
    verbs::choose_port(context, 0);
    return true;
  } catch (const Error&) {
    return false;
  }
}

struct Outcome {
  std::optional<report::RunRecord> record;
  std::optional<Error> client_error;
  std::optional<Error> server_error;
};

/// One request over a socket pair, the server on a thread of its own.
Outcome run_local(const TestSpec& spec, RunObserver* observer = nullptr) {
  // The server's end stays open until the client is done: a client that receives what is under way would else read a
  // hang-up.
  std::pair<proto::Channel, proto::Channel> ends = proto::local_channel_pair();
  proto::Channel& client = ends.first;
  Outcome outcome;
  const std::atomic<bool> cancelled{false};
  std::thread serving([&, &channel = ends.second] {
    try {
      const auto request = proto::expect<proto::RunRequest>(channel, 10s);
      serve_run(channel, request, cancelled);
    } catch (const Error& error) {
      outcome.server_error = error;
    }
  });
  try {
    outcome.record = run_client(client, spec, nullptr, {0, observer});
  } catch (const Error& error) {
    outcome.client_error = error;
  }
  {
    const proto::Channel gone = std::move(client);  // a server still waiting sees the hang-up
  }
  serving.join();
  return outcome;
}

TestSpec spec_for(gdrperf::Test test, std::uint64_t size_bytes) {
  TestSpec spec;
  spec.test = test;
  spec.size_bytes = size_bytes;
  spec.client.device = spec.server.device = device_name();
  spec.stop.duration = 40ms;
  return spec;
}

class EngineTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!device_present()) GTEST_SKIP() << "no RDMA device with an active port";
  }
};

void expect_sound(const Outcome& outcome, const TestSpec& spec) {
  ASSERT_FALSE(outcome.client_error) << outcome.client_error->what();
  ASSERT_FALSE(outcome.server_error) << outcome.server_error->what();
  ASSERT_TRUE(outcome.record);
  const report::Measurement& measured = outcome.record->measured;
  EXPECT_GT(measured.iterations, 0u);
  EXPECT_GT(measured.duration_s, 0);
  if (spec.test.metric == Metric::kBandwidth) {
    ASSERT_TRUE(measured.bandwidth);
    EXPECT_GT(measured.bandwidth->median_gbytes, 0);
    EXPECT_LE(measured.bandwidth->min_gbytes, measured.bandwidth->median_gbytes);
    EXPECT_GE(measured.bandwidth->max_gbytes, measured.bandwidth->median_gbytes);
  } else {
    ASSERT_TRUE(measured.latency);
    EXPECT_EQ(measured.latency->samples, measured.iterations);
    EXPECT_GT(measured.latency->min_ns, 0);
    EXPECT_LE(measured.latency->p50_ns, measured.latency->max_ns);
    EXPECT_EQ(measured.latency->halved, facts_of(spec.test.operation).carries_data);
  }
}

struct Notes final : RunObserver {
  void setting_up(const std::string& what) override { steps.push_back(what); }
  void measuring(const RunState& state) override { states.push_back(state); }
  bool wants_rate() const override { return rate; }
  bool rate = true;
  std::vector<std::string> steps;
  std::vector<RunState> states;
};

TEST_F(EngineTest, AnObserverHearsOfALongSetUpAndOfTheRun) {
  TestSpec spec = spec_for({Operation::kWrite, Metric::kBandwidth}, 64);
  spec.qps = 120;
  spec.tx_depth = 8;  // all queues are soon full, also under sanitizers
  spec.stop.duration = 1s;
  Notes notes;
  expect_sound(run_local(spec, &notes), spec);
  const std::vector<std::string> steps = {"waiting for the server to set up (120 QPs)", "creating 120 QPs",
                                          "connecting 120 QPs", "waiting for the server to set up (120 QPs)"};
  EXPECT_EQ(notes.steps, steps);
  ASSERT_GE(notes.states.size(), 2u);
  EXPECT_EQ(notes.states.front().bytes_per_s, 0);
  EXPECT_EQ(notes.states.front().left_s, 1);
  EXPECT_GT(notes.states.back().bytes_per_s, 0);
  EXPECT_LT(notes.states.back().left_s, 1);
}

// Nobody looks: nothing is computed.
TEST_F(EngineTest, AnObserverThatShowsNoRateIsToldNone) {
  TestSpec spec = spec_for({Operation::kWrite, Metric::kBandwidth}, 64);
  spec.stop.duration = 1s;
  Notes notes;
  notes.rate = false;
  expect_sound(run_local(spec, &notes), spec);
  ASSERT_GE(notes.states.size(), 2u);
  EXPECT_EQ(notes.states.back().bytes_per_s, 0);
  EXPECT_LT(notes.states.back().left_s, 1);
}

TEST_F(EngineTest, AnObserverIsToldTheRoundTripSoFar) {
  TestSpec spec = spec_for({Operation::kRead, Metric::kLatency}, 8);
  spec.stop = {};
  spec.stop.iterations = 20'000;
  Notes notes;
  expect_sound(run_local(spec, &notes), spec);
  EXPECT_TRUE(notes.steps.empty());
  ASSERT_GE(notes.states.size(), 2u);
  EXPECT_TRUE(std::isnan(notes.states.front().left_s));
  EXPECT_GT(notes.states.back().p50_ns, 0);
  EXPECT_GE(notes.states.back().left_s, 0);
}

TEST_F(EngineTest, EveryTestAtSeveralSizes) {
  for (const gdrperf::Test test : all_tests()) {
    for (const std::uint64_t size : sizes_of(test.operation, {1, 64, 4096, 65537, 1 << 20})) {
      SCOPED_TRACE(to_string(test) + " " + std::to_string(size));
      const TestSpec spec = spec_for(test, size);
      const Outcome outcome = run_local(spec);
      expect_sound(outcome, spec);
      if (outcome.record && test.metric == Metric::kBandwidth) {
        std::printf("%-9s %8llu B %8.3f GB/s\n", to_string(test).c_str(), static_cast<unsigned long long>(size),
                    outcome.record->measured.bandwidth->median_gbytes);
      } else if (outcome.record) {
        std::printf("%-9s %8llu B %8.2f us\n", to_string(test).c_str(), static_cast<unsigned long long>(size),
                    outcome.record->measured.latency->p50_ns * 1e-3);
      }
    }
  }
}

TEST_F(EngineTest, BidirectionalCountsBothEnds) {
  for (const OperationFacts& each : operations()) {
    const std::uint64_t size = sizes_of(each.operation, {65536}).front();
    TestSpec spec = spec_for({each.operation, Metric::kBandwidth}, size);
    spec.direction = Direction::kBidirectional;
    SCOPED_TRACE(to_string(spec.test));
    expect_sound(run_local(spec), spec);
  }
}

TEST_F(EngineTest, EventsInsteadOfPolling) {
  for (const gdrperf::Test test : all_tests()) {
    if (test == gdrperf::Test{Operation::kWrite, Metric::kLatency}) continue;  // waits on memory
    TestSpec spec = spec_for(test, sizes_of(test.operation, {4096}).front());
    spec.wait = Wait::kEvent;
    SCOPED_TRACE(to_string(test));
    expect_sound(run_local(spec), spec);
  }
}

TEST_F(EngineTest, IterationsAreCountedExactlyForLatency) {
  for (const std::uint64_t n : {1u, 7u, 1000u}) {
    TestSpec spec = spec_for({Operation::kSend, Metric::kLatency}, 8);
    spec.stop.duration.reset();
    spec.stop.iterations = n;
    const Outcome outcome = run_local(spec);
    expect_sound(outcome, spec);
    EXPECT_EQ(outcome.record->measured.latency->samples, n);
  }
}

TEST_F(EngineTest, ManyShapes) {
  struct Shape {
    int qps, tx_depth, rx_depth, cq_mod, post_list, inline_bytes;
  };
  for (const Shape& shape : {Shape{1, 1, 1, 1, 1, -1}, Shape{4, 16, 32, 5, 1, 0}, Shape{1, 128, 512, 100, 1, 0},
                             Shape{3, 64, 100, 7, 8, 64}, Shape{1, 32, 64, 32, 32, -1}, Shape{2, 99, 300, 64, 3, 16}}) {
    for (const Operation operation : {Operation::kWrite, Operation::kSend, Operation::kRead}) {
      for (const Direction direction : {Direction::kUnidirectional, Direction::kBidirectional}) {
        TestSpec spec = spec_for({operation, Metric::kBandwidth}, 16);
        spec.direction = direction;
        spec.qps = shape.qps;
        spec.tx_depth = shape.tx_depth;
        spec.rx_depth = shape.rx_depth;
        spec.cq_mod = shape.cq_mod;
        spec.post_list = shape.post_list;
        spec.inline_bytes = operation == Operation::kRead ? -1 : shape.inline_bytes;
        spec.stop.duration.reset();
        spec.stop.iterations = 5000;
        SCOPED_TRACE(to_string(spec.test) + " qps " + std::to_string(shape.qps) + " depth " +
                     std::to_string(shape.tx_depth));
        const Outcome outcome = run_local(spec);
        expect_sound(outcome, spec);
        if (outcome.record && direction == Direction::kUnidirectional) {
          EXPECT_GE(outcome.record->measured.iterations, 5000u);
        }
      }
    }
  }
}

TEST_F(EngineTest, VerifiesEveryTestInEveryShape) {
  struct Shape {
    std::uint64_t size;
    int qps, cq_mod, post_list, rx_depth;
    Direction direction;
  };
  std::vector<Shape> shapes{{4097, 3, 5, 1, 7, Direction::kUnidirectional},
                            {100, 2, 6, 3, 100, Direction::kBidirectional}};
  const char* const tests = std::getenv("GDRPERF_TESTS");
  if (tests == nullptr || std::string_view(tests) != "short") {
    shapes.push_back({1, 1, 0, 1, 512, Direction::kUnidirectional});
    shapes.push_back({65536, 1, 0, 4, 512, Direction::kBidirectional});
  }
  for (const Shape& shape : shapes) {
    for (const gdrperf::Test test : all_tests()) {
      TestSpec spec = spec_for(test, sizes_of(test.operation, {shape.size}).front());
      spec.verify_seed = 3;
      spec.stop.duration.reset();
      spec.stop.iterations = shape.size > 5000 ? 600 : 2000;
      if (test.metric == Metric::kBandwidth) {
        spec.qps = shape.qps;
        spec.cq_mod = shape.cq_mod;
        spec.tx_depth = 32 * shape.post_list;
        spec.post_list = shape.post_list;
        spec.rx_depth = shape.rx_depth;
        spec.direction = shape.direction;
      } else {
        spec.stop.iterations = 300;
      }
      SCOPED_TRACE(to_string(test) + " " + std::to_string(spec.size_bytes));
      expect_sound(run_local(spec), spec);
    }
  }
}

TEST_F(EngineTest, SaysWhatAMessageCostsTheCpuOfEachEnd) {
  for (const Operation operation : {Operation::kWrite, Operation::kSend}) {
    TestSpec spec = spec_for({operation, Metric::kBandwidth}, 64);
    spec.stop.duration.reset();
    spec.stop.iterations = 50'000;
    const Outcome outcome = run_local(spec);
    expect_sound(outcome, spec);
    const report::Measurement& measured = outcome.record->measured;
    ASSERT_TRUE(measured.client_cpu_per_message_ns && measured.server_cpu_per_message_ns);
    EXPECT_GT(*measured.client_cpu_per_message_ns, 0);
    EXPECT_GT(*measured.server_cpu_per_message_ns, 0);
    // Of a write the other end's CPU knows nothing.
    if (operation == Operation::kWrite) {
      EXPECT_LT(*measured.server_cpu_per_message_ns, *measured.client_cpu_per_message_ns);
    }
    spec.verify_seed = 1;
    spec.stop.iterations = 1000;
    EXPECT_FALSE(run_local(spec).record->measured.client_cpu_per_message_ns) << "filling and comparing is no message's";
  }
}

TEST_F(EngineTest, AServerThatCannotIsQuotedByTheClient) {
  TestSpec spec = spec_for({Operation::kWrite, Metric::kBandwidth}, 64);
  spec.server.device = "no_such_device";
  const Outcome outcome = run_local(spec);
  ASSERT_TRUE(outcome.client_error);
  EXPECT_NE(std::string(outcome.client_error->what()).find("no_such_device"), std::string::npos)
      << outcome.client_error->what();
  EXPECT_EQ(outcome.client_error->code(), ExitCode::kUsage);
}

TEST_F(EngineTest, RunsUntilTight) {
  TestSpec spec = spec_for({Operation::kWrite, Metric::kBandwidth}, 65536);
  spec.stop = {};
  spec.stop.precision = 0.9;  // whatever else the machine does
  spec.stop.cap = 10s;
  const Outcome outcome = run_local(spec);
  expect_sound(outcome, spec);
  EXPECT_EQ(outcome.record->measured.stop, report::StopReason::kPrecision);
  EXPECT_GE(outcome.record->measured.bandwidth->batches_gbytes.size(), 30u);
}

}  // namespace
}  // namespace gdrperf::engine
