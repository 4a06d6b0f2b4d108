// Which settings exclude each other: either alone is taken, both are refused.
#include "gdrperf/proto/spec.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "told.h"

namespace gdrperf {
namespace {

using std::chrono::nanoseconds;

using Put = void (*)(TestSpec&);

struct Conflict {
  const char* told;
  Put one;
  Put other;
  Put before = [](TestSpec&) {};  ///< what all three specs have
};

constexpr Put kVerify = [](TestSpec& s) { s.verify_seed = 1; };
constexpr Put kTwoThreads = [](TestSpec& s) { s.threads = 2; };
constexpr Put kTwoQps = [](TestSpec& s) { s.qps = 2; };
constexpr Put kRails = [](TestSpec& s) { s.rails = "a,b"; };
constexpr Put kIncast = [](TestSpec& s) { s.incast = 2; };
constexpr Put kVictim = [](TestSpec& s) { s.victim = "any"; };
constexpr Put kReverse = [](TestSpec& s) { s.reverse = true; };
constexpr Put kBothWays = [](TestSpec& s) { s.direction = Direction::kBidirectional; };
constexpr Put kMessages = [](TestSpec& s) { s.stop.iterations = 1000; };
constexpr Put kTime = [](TestSpec& s) { s.stop.duration = std::chrono::seconds(1); };
constexpr Put kForever = [](TestSpec& s) { s.stop.forever = true; };
constexpr Put kRdmaCm = [](TestSpec& s) { s.connector = Connector::kRdmaCm; };
constexpr Put kLabel = [](TestSpec& s) { s.flow_label = 1; };
constexpr Put kLabels = [](TestSpec& s) { s.flow_labels = "7,8"; };
constexpr Put kSpread = [](TestSpec& s) { s.spread = 2; };
constexpr Put kEce = [](TestSpec& s) { s.ece = Use::kOn; };
constexpr Put kUc = [](TestSpec& s) { s.transport = Transport::kUc; };
constexpr Put kUd = [](TestSpec& s) { s.transport = Transport::kUd; };
constexpr Put kXrc = [](TestSpec& s) { s.transport = Transport::kXrc; };
constexpr Put kDc = [](TestSpec& s) { s.transport = Transport::kDc; };
constexpr Put kSrd = [](TestSpec& s) { s.transport = Transport::kSrd; };
constexpr Put kOnePerSecond = [](TestSpec& s) { s.rate_per_s = 1; };
constexpr Put kGap = [](TestSpec& s) { s.latency_gap = nanoseconds(1); };
constexpr Put kSignal = [](TestSpec& s) { s.signal = Signal::kWrite; };
constexpr Put kSrq = [](TestSpec& s) { s.srq = true; };

constexpr Put kSends = [](TestSpec& s) { s.test.operation = Operation::kSend, s.size_bytes = 1024; };
constexpr Put kLatency = [](TestSpec& s) { s.test.metric = Metric::kLatency; };

void expect_conflicts(const std::vector<Conflict>& conflicts) {
  for (const Conflict& each : conflicts) {
    TestSpec one, other, both;
    for (TestSpec* spec : {&one, &other, &both}) each.before(*spec);
    each.one(one);
    each.other(other);
    each.one(both);
    each.other(both);
    EXPECT_EQ(told_by([&] { validate(one); }), "taken") << each.told;
    EXPECT_EQ(told_by([&] { validate(other); }), "taken") << each.told;
    EXPECT_EQ(told_by([&] { validate(both); }), each.told);
  }
}

TEST(Conflicts, OfWhatEndsARun) {
  expect_conflicts({
      {"--forever and -n exclude each other: a signal ends a run that goes on", kForever, kMessages},
      {"--forever and -D exclude each other: a signal ends a run that goes on", kForever, kTime},
      {"-n and -D exclude each other: a run ends after a number of messages or after a time", kMessages, kTime},
  });
}

TEST(Conflicts, OfDirections) {
  expect_conflicts({
      {"--reverse and -b: client and server both send then | leave one of them out", kReverse, kBothWays},
      {"--reverse: verified messages go from the client | -b verifies both directions", kReverse, kVerify},
  });
}

TEST(Conflicts, OfThePathsOfQps) {
  constexpr auto kLeave = "; leave -R out to choose it here";
  const auto told = [&](const char* what) { return std::string(what) + kLeave; };
  const std::string partition = told("--pkey-index: rdma_cm takes the partition of the address");
  const std::string timer = told("--rnr-timer: rdma_cm sets the RNR timer");
  const std::string port = told("--lag-port: rdma_cm chooses the port of a bonded device");
  const std::string spread = told("--spread 2: rdma_cm chooses the path");
  const std::string label = told("--flow-label 1: rdma_cm chooses the path");
  const std::string labels = told("--flow-label 7: rdma_cm chooses the path");
  expect_conflicts({
      {"--spread and --flow-label: both choose the paths of the QPs", kSpread, kLabel},
      {"--spread and --flow-label: both choose the paths of the QPs", kSpread, kLabels},
      {"--flow-label with --transport ud: a client's messages share one address handle, and so one flow label",
       kLabels, kUd, kSends},
      {"--spread with --transport ud: a client's messages share one address handle, and so one flow label", kSpread,
       kUd, kSends},
      {"--spread with --transport dc: a client's messages share one address handle, and so one flow label", kSpread,
       kDc},
      {"--flow-label with --transport srd: a client's messages share one address handle, and so one flow label",
       kLabels, kSrd},
      {partition.c_str(), [](TestSpec& s) { s.pkey_index = 1; }, kRdmaCm},
      {timer.c_str(), [](TestSpec& s) { s.rnr_timer = 13; }, kRdmaCm},
      {port.c_str(), [](TestSpec& s) { s.lag_ports = "1"; }, kRdmaCm},
      {spread.c_str(), kSpread, kRdmaCm},
      {label.c_str(), kLabel, kRdmaCm},
      {labels.c_str(), kLabels, kRdmaCm},
  });
}

TEST(Conflicts, OfTransports) {
  expect_conflicts({
      {"--transport xrc: --ece on is not supported there | leave it out", kXrc, kEce},
      {"--transport dc: --ece on is not supported there | leave it out", kDc, kEce},
      {"--transport srd: --ece on is not supported there | leave it out", kSrd, kEce},
      {"--transport ud: --ece on is agreed on in a connection, and datagrams have none", kUd, kEce, kSends},
      {"--transport uc: -R connects RC QPs | leave -R out", kUc, kRdmaCm},
      {"--transport uc: write_bw cannot be verified: nobody learns when a write has arrived"
       " | write_imm_bw and send_bw are verified over UC",
       kUc, kVerify},
      {"--transport srd: --seed compares message by message, and these arrive in any order"
       " | write_bw and read_bw are verified over SRD",
       kSrd, kVerify, kSends},
      {"--srq: verbs have shared receive queues for RC and UD, not for UC | leave one of them out", kSrq, kUc, kSends},
      {"--srq: verbs have shared receive queues for RC and UD, not for SRD | leave one of them out", kSrq, kSrd,
       kSends},
      {"--srq: messages take receives as they come, and not the places that are compared | leave one of them out", kSrq,
       kVerify, kSends},
  });
}

TEST(Conflicts, OfLatencyTests) {
  expect_conflicts({
      {"-q 2 and --seed: verified messages of a latency test have one QP | leave one of them out", kTwoQps, kVerify,
       kLatency},
      {"-q 2 and --initiator: who posts waits for one QP | leave one of them out", kTwoQps,
       [](TestSpec& s) { s.initiator = Initiator::kGpuProxy; }, kLatency},
      {"--latency-gap and --rate: each decides when a message leaves | leave one of them out", kGap, kOnePerSecond,
       kLatency},
      {"--latency-gap and --seed: verified messages are sent in rounds | leave one of them out", kGap, kVerify,
       kLatency},
      {"--load: verified messages are sent in rounds, and nothing else runs meanwhile | leave one of them out",
       [](TestSpec& s) { s.load = "50%"; }, kVerify, kLatency},
      {"--signal atomic: there are none over UC | give write or imm", [](TestSpec& s) { s.signal = Signal::kAtomic; },
       kUc, kLatency},
      {"--signal and --transport srd: SRD keeps no order, and a signal may overtake its message | leave one of them "
       "out",
       kSignal, kSrd, kLatency},
      {"--signal and -q 2: a signal is that of one QP | leave one of them out", kSignal, kTwoQps, kLatency},
      {"--signal and --seed: the signal's order is what is checked | leave one of them out", kSignal, kVerify,
       kLatency},
      {"--signal and --null-mr: nothing is written there, so nothing would be seen | leave one of them out", kSignal,
       [](TestSpec& s) { s.null_mr = true; }, kLatency},
  });
}

TEST(Conflicts, OfRoundsAndRates) {
  expect_conflicts({
      {"--rate: verified messages are sent in rounds, not at a rate | leave --rate out", kOnePerSecond, kVerify},
      {"--rate: a sender that sleeps (-e) misses what is due", kOnePerSecond,
       [](TestSpec& s) { s.wait = Wait::kEvent; }},
      {"--null-mr: nothing is read from a null memory region, so there is nothing to verify | leave one of them out",
       [](TestSpec& s) { s.null_mr = true; }, kVerify},
      {"--random-places and --seed: verified messages have places in order | leave one of them out",
       [](TestSpec& s) { s.random_places = true; }, kVerify},
      {"--threads 2 and -b: the server's verified laps begin at no common moment | verify one direction", kTwoThreads,
       kBothWays, kVerify},
      {"--victim: nothing is sent while verified laps are compared | leave one of them out", kVictim, kVerify, kIncast},
  });
}

TEST(Conflicts, OfSeveralThreadsDevicesOrClients) {
  constexpr Put kCpu = [](TestSpec& s) { s.client.cpu = 0; };
  constexpr Put kPeerCpu = [](TestSpec& s) { s.server.cpu = 0; };
  constexpr Put kDevice = [](TestSpec& s) { s.client.device = "a"; };
  constexpr Put kPeerDevice = [](TestSpec& s) { s.server.device = "a"; };
  expect_conflicts({
      {"--threads 2 and --spread: on one thread QPs take flow labels round-robin | leave one of them out", kTwoThreads,
       kSpread},
      {"--threads 2 and --flow-label: on one thread QPs take flow labels round-robin | leave one of them out",
       kTwoThreads, kLabels},
      {"--threads 2 and --cpu: each thread has a CPU of its own, of the node of its NIC | leave one of them out",
       kTwoThreads, kCpu},
      {"--threads 2 and --peer-cpu: each thread has a CPU of its own, of the node of its NIC | leave one of them out",
       kTwoThreads, kPeerCpu},
      {"--rails and --cpu: each thread has a CPU of its own, of the node of its NIC | leave one of them out", kRails,
       kCpu},
      {"--incast 2 and --cpu: each thread has a CPU of its own, of the node of its NIC | leave one of them out",
       kIncast, kCpu},
      {"--rails and -d: each names the client's devices | leave one of them out", kRails, kDevice, kTwoThreads},
      {"--rails and --peer-dev: the server's devices have names of their own | leave one of them out", kRails,
       kPeerDevice, kTwoThreads},
      {"--incast 2 and --threads: each client has one thread | leave one of them out", kIncast, kTwoThreads},
      {"--incast 2 and --peer-rails: the server has one device | leave one of them out", kIncast,
       [](TestSpec& s) { s.peer_rails = "c,d"; }, kRails},
      {"--incast 2 and --reverse: the server alone knows whether its messages are on their way | leave one of them out",
       kVictim, kReverse, kIncast},
      {"--incast 2 and -n: the victim's test decides how long all of it runs | leave one of them out", kVictim,
       kMessages, kIncast},
  });
  TestSpec spec;
  spec.rails = "a,b";
  spec.incast = 2;
  spec.server.device = "c";
  EXPECT_EQ(told_by([&] { validate(spec); }), "taken") << "an incast has one device of the server";
}

}  // namespace
}  // namespace gdrperf
