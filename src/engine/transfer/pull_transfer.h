#pragma once

#include <cstdint>

#include "engine/transfer/staging_transfer.h"

namespace gdrperf::engine {

/// Reads: the end that wants data asks for chunks (a note with how many in
/// all), the end that has them in GPU memory copies each into a slot of pinned
/// host memory and offers it (a note likewise), an RDMA read brings it over,
/// and, where this end's memory is a GPU's, a copy takes it there; all at once
/// for different chunks. An end that is not staged leaves its copy out, and one
/// that has nothing to copy is not asked. Nothing is copied before it is asked
/// for: a read returns what was there when, or after, it began. In a
/// bidirectional run both ends do both.
class PullTransfer final : public StagingTransfer {
 public:
  PullTransfer(StagingEnd& end, Peer& peer);

  std::optional<proto::Message> bounce_until(std::uint64_t goal) override;
  /// It has to copy what is asked for.
  bool receives() const override { return out_ != nullptr; }

 private:
  /// Content of a note: whose count it is, how large the chunks are, the count.
  struct Note {
    static constexpr std::uint32_t kOffer = 1u << 31;
    static constexpr unsigned kShiftAt = 28;
    static constexpr std::uint32_t kCount = (1u << kShiftAt) - 1;
  };

  bool step() override;
  std::uint64_t progress() const override { return landed_ + offered_; }
  bool idle() const override { return landed_ == planned_; }
  bool all_told() const override { return offered_ == issued_; }
  void post_chunk(const Chunk& chunk, std::uint64_t slot) override;
  void reaped_send(const ibv_wc& wc) override;
  void reaped_receive(const ibv_wc& wc) override;
  bool tell(std::uint32_t kind, std::uint64_t count, std::uint64_t& told);
  bool plan();
  void arrived(const Chunk& chunk);
  bool land();
  bool produce();
  bool offer();

  // The end that reads; counts of chunks.
  std::uint64_t planned_ = 0;    ///< that are to be read
  std::uint64_t asked_ = 0;      ///< as the peer was told
  std::uint64_t ready_ = 0;      ///< that the peer has offered
  std::uint64_t landed_ = 0;

  // The end that has the data.
  Cutter source_;
  unsigned source_shift_ = 0;
  std::uint64_t wanted_ = 0;
  std::uint64_t issued_ = 0;
  std::uint64_t offered_ = 0;
};

}  // namespace gdrperf::engine
