#pragma once

#include <cstdint>

#include "gdrperf/proto/settings.h"
#include "gdrperf/proto/spec.h"

/// What rows of the option table share: groups of help, ranges, words for values, and reasons.
namespace gdrperf::setting_rows {

constexpr const char* kOwnGroup = "The client (or, without HOST, the server)";
constexpr const char* kPeerGroup = "The server";
constexpr const char* kGpuGroup = "GPU memory";
constexpr const char* kQueueGroup = "Queues and messages";
constexpr const char* kStopGroup = "How long (default: until the 95 % interval of the median is tight)";
constexpr const char* kNetworkGroup = "Network";

// Lengths of texts. One that is empty at its default may be.
constexpr Range kNameLength = {0, 128};
constexpr Range kListLength = {0, 16384 * 8};
constexpr int kMostFlowLabel = (1 << 20) - 1;
constexpr std::int64_t kMaxMessageBytes = 1ll << 31;  // InfiniBand specification vol. 1, 9.7.2
constexpr std::int64_t kMaxDepth = 65536;
constexpr std::int64_t kMaxParts = 64;
constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kHour = 3600 * 1000 * kMillisecond;
constexpr Range kTimeRange = {kMillisecond, 7 * 24 * kHour};

constexpr Choice kDirections[] = {{"unidirectional", 0}, {"bidirectional", 1}};
constexpr Choice kGidFamilies[] = {{"any", static_cast<int>(GidFamily::kAny)},
                                   {"ipv4", static_cast<int>(GidFamily::kIpv4)},
                                   {"ipv6", static_cast<int>(GidFamily::kIpv6)}};
constexpr Choice kWaits[] = {{"poll", 0}, {"event", 1}};
constexpr Choice kConnectors[] = {{"exchange", 0}, {"rdma_cm", 1}};
constexpr Choice kTransports[] = {{"rc", 0}, {"uc", 1}, {"ud", 2}, {"xrc", 3}, {"dc", 4}, {"srd", 5},
                                   {"RC", 0}, {"UC", 1}, {"UD", 2}, {"XRC", 3}, {"DC", 4}, {"SRD", 5}};
constexpr Choice kRegistrations[] = {{"dmabuf", static_cast<int>(Registration::kDmabuf)},
                                     {"peermem", static_cast<int>(Registration::kPeermem)},
                                     {"dmabuf-pcie", static_cast<int>(Registration::kDmabufPcie)},
                                     {"data-direct", static_cast<int>(Registration::kDataDirect)}};
constexpr Choice kOrderings[] = {{"auto", static_cast<int>(Ordering::kAuto)},
                                 {"on", static_cast<int>(Ordering::kRelaxed)},
                                 {"off", static_cast<int>(Ordering::kStrict)}};
constexpr Choice kUses[] = {
    {"off", static_cast<int>(Use::kOff)}, {"on", static_cast<int>(Use::kOn)}, {"auto", static_cast<int>(Use::kAuto)}};
constexpr Choice kLimiters[] = {
    {"sw", static_cast<int>(Limiter::kSoftware)}, {"hw", static_cast<int>(Limiter::kHardware)},
    {"auto", static_cast<int>(Limiter::kAuto)},   {"SW", static_cast<int>(Limiter::kSoftware)},
    {"HW", static_cast<int>(Limiter::kHardware)}, {"PP", static_cast<int>(Limiter::kHardware)}};
constexpr Choice kInitiators[] = {{"cpu", static_cast<int>(Initiator::kCpu)},
                                  {"gpu-proxy", static_cast<int>(Initiator::kGpuProxy)},
                                  {"gpu", static_cast<int>(Initiator::kGpu)},
                                  {"cpu-rings", static_cast<int>(Initiator::kCpuRings)}};
constexpr Choice kGpuScopes[] = {{"thread", static_cast<int>(GpuScope::kThread)},
                                 {"warp", static_cast<int>(GpuScope::kWarp)},
                                 {"block", static_cast<int>(GpuScope::kBlock)}};
constexpr Choice kPaths[] = {{"direct", 0}, {"staged", 1}};
constexpr Choice kAtomics[] = {{"fetch_add", 0}, {"cmp_swap", 1}, {"FETCH_AND_ADD", 0}, {"CMP_AND_SWAP", 1}};
constexpr Choice kSignals[] = {{"none", static_cast<int>(Signal::kNone)},
                               {"write", static_cast<int>(Signal::kWrite)},
                               {"imm", static_cast<int>(Signal::kImmediate)},
                               {"atomic", static_cast<int>(Signal::kAtomic)}};
constexpr std::int64_t kMtus[] = {256, 512, 1024, 2048, 4096};

constexpr Recorded kCondition = {.identity = Identity::kCondition};
constexpr Recorded kNamed = {.identity = Identity::kName};
constexpr Recorded kBytes = {.identity = Identity::kCondition, .unit = "B"};

constexpr const char* kOneInFlight = "a latency test has one message in flight";
constexpr const char* kUnacknowledged = "over UC and UD nothing is acknowledged, and nothing sent again";

}  // namespace gdrperf::setting_rows
