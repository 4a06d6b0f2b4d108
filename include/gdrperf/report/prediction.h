#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "gdrperf/report/reference.h"
#include "gdrperf/topo/ceiling.h"

namespace gdrperf::report {

/// Bandwidth to expect of a pair of GPU and NIC, and how sure that is. Below one PCIe switch the ceiling is what
/// is measured but for a fifth at most; through the root complex, and more so across sockets, it is a bound: machines
/// differ tenfold there, and only figures published of the same class tell what to expect.
struct Prediction {
  topo::Ceiling ceiling;     ///< the lesser of the path's links and the NIC's port
  bool bound = false;        ///< the ceiling says no more than "not above this"
  std::size_t figures = 0;   ///< published of this class; with none `least` and `median` are 0
  double least_gbps = 0;     ///< by the lowest of them, as a share of its own ceiling, less a twentieth
  double median_gbps = 0;    ///< by the middle one
  double lowest_gbps = 0;    ///< shares of the lowest and the highest of them, of this ceiling
  double highest_gbps = 0;
};

/// Direction for which the source of a figure holds. kEither counts figures of both.
enum class MemoryAccess { kEither, kNicReads, kNicWrites };

/// Nothing where neither the path's links nor the port's rate are known. `leave_out`: a figure that does not count, so
/// that it can be held against what the others predict.
std::optional<Prediction> predict(topo::Relation relation, const std::optional<topo::Ceiling>& ceiling,
                                  MemoryAccess access = MemoryAccess::kEither,
                                  const PublishedFigure* leave_out = nullptr);

/// The same for a path of a tree and the port of the NIC that it leads to.
std::optional<Prediction> predict(const topo::PciTree& tree, const topo::PciPath& path, const topo::TreeNic& nic,
                                  topo::Relation relation, MemoryAccess access = MemoryAccess::kEither);

/// The ceiling of the machine a figure was measured on: its port's rate, and the GPU's link where the GPU is named.
/// Nothing without a rate.
std::optional<topo::Ceiling> ceiling_of(const PublishedFigure& figure);

/// "40.0 to 49.0", or "bound 24.5, published 0.5 to 24.2"; GB/s.
std::string range_text(const Prediction& prediction);

/// Why it is as sure as it is, in a sentence.
std::string sureness_text(const Prediction& prediction, topo::Relation relation);

}  // namespace gdrperf::report
