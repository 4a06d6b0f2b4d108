#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace gdrperf::softnic {

/// The link that a device pretends to have (softnic/docs/model.md). All zero: none.
struct LinkConfig {
  double rate = 0;  ///< bytes per second; 0: no limit
  double latency_ns = 0;
  double ack_ns = 0;  ///< on top of the latency
  double per_message_ns = 0;
  double slow = 1;
  int slow_sport = 0;          ///< UDP source port whose path is slower; 0: none is
  double slow_sport_rate = 0;  ///< bytes per second of each QP on it
  double strict_rate =
      0;  ///< bytes per second of messages whose memory was registered without relaxed ordering; 0: no less
  double react_ns = 500;
  std::uint32_t mtu = 4096;
  std::uint32_t header = 0;  ///< bytes per packet
  bool edges_only = false;
  bool ingress = false;  ///< what comes in queues at the rate, too
  bool pacing = false;   ///< QPs have rate limits (ibv_modify_qp_rate_limit)
  bool given = false;  ///< some option of the link was there
};

enum class FaultKind : std::uint8_t {
  kNone,
  kDrop,
  kStale,
  kFlip,
  kTruncate,
  kMisplace,
  kDelay,
  kStall,
  kRnr,
  kLoss,
};

/// Messages that a fault concerns, a bit each.
enum FaultOps : std::uint8_t { kFaultWrite = 1, kFaultRead = 2, kFaultSend = 4, kFaultAtomic = 8 };

struct FaultRule {
  FaultKind kind = FaultKind::kNone;
  std::uint8_t ops = kFaultWrite | kFaultRead | kFaultSend | kFaultAtomic;
  std::uint64_t every = 1;
  double probability = -1;  ///< negative: `every` decides
  std::uint64_t seed = 1;
  std::uint64_t from = 0;
  std::uint64_t count = ~0ull;
  double time_ns = 0;
};

/// True when `key` is an option of the link model, which then has the value.
/// Throws usage_error naming SOFTNIC.
bool apply_link_option(LinkConfig& link, std::string_view key, std::string_view value);

/// "KIND[:KEY=VALUE]...". Throws usage_error naming SOFTNIC.
FaultRule parse_fault_rule(std::string_view value);

}  // namespace gdrperf::softnic
