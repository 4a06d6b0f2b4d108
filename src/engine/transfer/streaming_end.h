#pragma once

#include <memory>

#include "engine/setup/demand.h"
#include "engine/setup/streams.h"
#include "engine/setup/local_end.h"
#include "engine/setup/plan.h"
#include "gdrperf/mem/rings.h"

namespace gdrperf::engine {

/// An end whose NIC reaches the messages' own memory: work requests are built before
/// the run and posted by kernels.
class StreamingEnd final : public LocalEnd {
 public:
  explicit StreamingEnd(EndInput input);

  static QueueDemand queues(const ResolvedSpec& spec, conn::Side side);

  std::unique_ptr<Transfer> make_transfer(Peer& peer) override;
  Plan& plan() { return *plan_; }
  /// Of what arrives here and leaves from here; null where the CPU starts messages. Owned by the transfer: it ends with
  /// the run.
  std::unique_ptr<mem::Relay> make_relay();
  /// Of the QPs, where threads post to them themselves; else null.
  mem::Rings* rings() { return rings_.get(); }

 private:
  QueueRights rights() const;
  std::uint64_t messages_bytes() const;
  void connected() override;
  void map_rings();

  std::unique_ptr<Plan> plan_;
  std::unique_ptr<mem::Rings> rings_;
};

}  // namespace gdrperf::engine
