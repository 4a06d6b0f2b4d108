#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gdrperf/report/record.h"

namespace gdrperf::report {

/// What the ports of both ends counted of the network during a run, by the names that drivers give such counters
/// (mlx5, bnxt_re, irdma, efa, rxe and the generic ones; docs/reference/network.md). Ports count all traffic, not just
/// this run's.
struct Network {
  std::optional<double> resent_per_million;   ///< requests sent again per million packets; nothing: nobody counts them
  std::optional<double> wire_bytes_per_byte;  ///< bytes on the wire per byte of payload
  std::uint64_t dropped = 0;                  ///< packets that a port discarded or received broken
  std::uint64_t lost_messages =
      0;  ///< that the other end did not get, whatever the ports counted; the record warns of them
  std::uint64_t congestion = 0;               ///< congestion notifications (CNP) and packets marked by ECN
  std::uint64_t pauses = 0;                   ///< pause frames, PFC's too
  std::optional<double> pause_share;          ///< of the time, that a sender had to be silent
  std::uint64_t link_errors = 0;              ///< of the NICs' PCIe links; no part of the verdict
  bool lossy() const { return dropped > 0 || lost_messages > 0 || resent_per_million.value_or(0) > 0; }
  bool throttled() const { return congestion > 0; }
  bool paused() const { return pauses > 0 || pause_share.value_or(0) > 0; }
  /// "clean", or what it was: "lossy", "throttled" and "paused", joined by "+".
  std::string verdict() const;
};

/// Nothing where neither end has counters.
std::optional<Network> network_of(const Measurement& measured);

/// One sentence for each thing that was wrong, with its figure.
std::vector<std::string> sentences(const Network& network);

}  // namespace gdrperf::report
