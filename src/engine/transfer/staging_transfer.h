#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gdrperf/engine/resolve.h"
#include "gdrperf/mem/copier.h"
#include "engine/transfer/transfer.h"
#include "engine/watch/peer.h"
#include "engine/transfer/staging_end.h"

namespace gdrperf::engine {

/// Common part of both directions of staging: messages cut into chunks that go
/// through stages, one QP, notes (sends without data) by which the ends tell
/// each other how far they are. Driven by step() from one thread.
class StagingTransfer : public Transfer {
 public:
  StagingTransfer(StagingEnd& end, Peer& peer);

  const std::uint64_t& sent() const override { return sent_; }
  const std::uint64_t& received() const override { return received_; }
  const std::uint64_t& rounds() const override { return rounds_; }
  std::vector<std::uint64_t> posted_messages() const override { return {cutter_.messages}; }

  std::optional<proto::Message> send_until(std::uint64_t goal) override;
  std::optional<proto::Message> receive_until(std::uint64_t goal) override;
  std::optional<proto::Message> send_lap(const std::vector<std::uint64_t>& messages) override;
  std::optional<Edge> edge() override;
  std::uint64_t least_batch() const override;
  void drain() override;

  /// Tries chunk sizes and keeps the fastest.
  void tune() override;
  std::uint64_t chunk_bytes() const override { return chunk_; }
  stats::Histogram& histogram() override { return histogram_; }

 protected:
  struct Chunk {
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;  ///< in the area of its messages
    bool last = false;         ///< of its message
  };
  /// Cuts messages, one after the other, into chunks.
  struct Cutter {
    Chunk next(std::uint64_t chunk_bytes, std::uint64_t message_bytes, const Layout& layout);
    std::uint64_t begun = 0;  ///< bytes of the message in hand that are cut
    std::uint64_t messages = 0;  ///< whose last chunk has been cut
  };
  static constexpr std::uint64_t kData = 0;  ///< wr_id
  static constexpr std::uint64_t kNote = 1;
  /// Posted in one step: where posting moves the data itself (the software
  /// device), the other stages and the peer get their turn in between.
  static constexpr std::uint64_t kStepBytes = 256u << 10;

  /// By post_data(), from or to the place where this end has it.
  virtual void post_chunk(const Chunk& chunk, std::uint64_t slot) = 0;
  /// All that can be done now. False: there was nothing.
  virtual bool step() = 0;
  /// Changes whenever something moves.
  virtual std::uint64_t progress() const = 0;
  /// Nothing that this end sent or asked for is under way.
  virtual bool idle() const = 0;
  /// The peer knows how far this end is.
  virtual bool all_told() const = 0;
  virtual void reaped_send(const ibv_wc& wc) = 0;
  /// Its receive has been posted again.
  virtual void reaped_receive(const ibv_wc& wc) = 0;

  bool reap(ibv_cq* cq);
  /// Posts chunks while fewer than `ready` are. False: there was nothing.
  bool post_chunks(std::uint64_t ready);
  /// Moves a chunk between `here` and where the peer has it on the wire.
  void post_data(ibv_wr_opcode opcode, const Chunk& chunk, std::uint64_t slot, std::byte* here);
  void post_note(std::uint32_t value);
  void set_chunk_shift(unsigned shift);
  /// Until done() or a word of the peer's.
  template <typename Done>
  std::optional<proto::Message> step_until(Done done);

  conn::Side side_;
  StagingEnd& end_;
  const ResolvedSpec& spec_;
  Peer& peer_;
  WireShape wire_;
  Layout layout_;
  std::string device_;
  bool own_staged_;
  bool peer_staged_;
  std::uint64_t chunk_;
  unsigned chunk_shift_ = 0;  ///< chunk_ is a slot's size shifted right by this

  Cutter cutter_;            ///< of the messages that this end sends, or reads
  std::uint64_t limit_ = 0;  ///< messages that it may start
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t rounds_ = 0;
  stats::Histogram histogram_;

  std::unique_ptr<mem::Copier> out_;  ///< null: nothing to copy out of this end's memory
  std::unique_ptr<mem::Copier> in_;   ///< null: nor into it
  // Chunks that this end sends, or reads, and the counts of them.
  std::vector<Chunk> ring_;
  std::uint64_t posted_ = 0;
  std::uint64_t completed_ = 0;  ///< reaped from the send CQ
  std::vector<bool> last_ring_;  ///< of the peer's chunks: the last of its message?
  std::uint64_t notes_in_flight_ = 0;

 private:
  void post(ibv_send_wr& request);
  void post_receive();
};

template <typename Done>
std::optional<proto::Message> StagingTransfer::step_until(Done done) {
  constexpr std::uint32_t kStepsBeforeLook = 256;
  StallWatch stall(device_);
  std::uint32_t idle_steps = 0;
  std::uint32_t busy_steps = 0;
  while (!done()) {
    if (step()) {
      idle_steps = 0;
      if (++busy_steps % kStepsBeforeLook != 0) continue;
    } else {
      if (++idle_steps % kStepsBeforeLook != 0) continue;
      ::sched_yield();
    }
    if (auto message = peer_.poll_now_and_then()) {
      // Data that the peer wrote before it spoke is there by now.
      while (!done() && step()) {
      }
      if (!done()) return message;
      peer_.put_back(std::move(*message));
      return std::nullopt;
    }
    stall.check(progress());
  }
  return std::nullopt;
}

}  // namespace gdrperf::engine
