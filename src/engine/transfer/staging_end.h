#pragma once

#include <cstdint>
#include <memory>

#include "engine/setup/demand.h"
#include "engine/setup/local_end.h"

namespace gdrperf::engine {

/// An end of a run whose data goes, at either end or both, through pinned host memory:
/// chunks are copied and posted as they come.
class StagingEnd final : public LocalEnd {
 public:
  explicit StagingEnd(EndInput input);

  static QueueDemand queues(const ResolvedSpec& spec, conn::Side side);

  std::unique_ptr<Transfer> make_transfer(Peer& peer) override;

  /// This end's data, the other's, goes through its host's memory.
  bool staged() const { return spec().staged(side()); }
  bool peer_staged() const;
  ibv_qp* qp() const { return qps().front(); }
  /// Slots in host memory for what leaves and what arrives; null where this end is not staged.
  std::byte* out_slot(std::uint64_t slot) const;
  std::byte* in_slot(std::uint64_t slot) const;

 private:
  bool reads() const { return spec().test.operation == Operation::kRead; }
  std::uint64_t wire_bytes(bool staged) const;
  void connected() override;
};

}  // namespace gdrperf::engine
