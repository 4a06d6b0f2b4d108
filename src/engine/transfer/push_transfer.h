#pragma once

#include <cstdint>

#include "engine/transfer/staging_transfer.h"

namespace gdrperf::engine {

/// Writes and sends: chunks go through up to three stages at once: a copy from
/// GPU memory into pinned host memory, a write with immediate into the other
/// end's pinned memory, a copy from there into its GPU. An end that is not
/// staged leaves its copy out. The receiver gives slots back, by a note of how
/// many chunks have landed, when their copies have ended; with --consume, when
/// the GPU has computed on the message as well. So a message counts when it is
/// where it is to be. In a bidirectional run both ends are both.
class PushTransfer final : public StagingTransfer {
 public:
  PushTransfer(StagingEnd& end, Peer& peer);

  std::optional<proto::Message> bounce_until(std::uint64_t goal) override;
  bool receives() const override;

 private:
  bool step() override;
  std::uint64_t progress() const override { return credited_ + landed_; }
  bool idle() const override { return completed_ == posted_; }
  bool all_told() const override { return told_ == landed_; }
  void post_chunk(const Chunk& chunk, std::uint64_t slot) override;
  void reaped_send(const ibv_wc& wc) override;
  void reaped_receive(const ibv_wc& wc) override;
  bool issue();
  void arrived(std::uint64_t bytes);
  bool land();

  // Sender; counts of chunks.
  std::uint64_t issued_ = 0;
  std::uint64_t credited_ = 0;

  // Receiver.
  std::uint64_t arrive_message_ = 0;
  std::uint64_t arrive_offset_ = 0;
  std::uint64_t arrived_ = 0;
  std::uint64_t landed_ = 0;
  std::uint64_t told_ = 0;
};

}  // namespace gdrperf::engine
