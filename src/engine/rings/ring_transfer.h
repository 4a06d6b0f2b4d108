#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/transfer/streaming_end.h"
#include "engine/transfer/transfer.h"
#include "engine/watch/peer.h"
#include "gdrperf/mem/rings.h"

namespace gdrperf::engine {

/// Messages that threads post to the rings of mlx5 QPs themselves, on a GPU or on the CPU. This end's own thread says
/// how far they may go, counts what they report, and takes what arrives.
class RingTransfer final : public Transfer {
 public:
  RingTransfer(StreamingEnd& end, Peer& peer);

  std::optional<proto::Message> send_until(std::uint64_t goal) override;
  std::optional<proto::Message> receive_until(std::uint64_t goal) override;
  std::optional<proto::Message> bounce_until(std::uint64_t goal) override;
  std::optional<proto::Message> send_lap(const std::vector<std::uint64_t>& messages) override;
  void arm_atomics(const WordOf& word, std::uint64_t step) override;
  std::optional<Edge> edge() override;
  std::uint64_t least_batch() const override;
  stats::Histogram& histogram() override { return histogram_; }
  std::uint64_t early_signals() const override { return rings_.early_signals(); }
  std::optional<mem::RingClock> poster_clock() override { return rings_.end(); }
  void be_patient(std::chrono::milliseconds patience) override { patience_ = patience; }
  void drain() override;

  const std::uint64_t& sent() const override { return sent_; }
  const std::uint64_t& received() const override { return plan_.recv.received; }
  const std::uint64_t& rounds() const override { return rounds_; }
  bool receives() const override { return plan_.receives(); }
  std::vector<std::uint64_t> posted_messages() const override;

 private:
  enum class Arrivals { kTaken, kLeft };
  /// One look: what has completed, what has arrived, what the peer says, and whether anything moves.
  std::optional<proto::Message> look(StallWatch& stall, Arrivals arrivals);
  void count_sent();
  void take_samples(std::uint64_t until);
  void throw_if_failed();
  void order_all(std::uint64_t limit);
  mem::RingBounce bounce() const;

  StreamingEnd& end_;
  const ResolvedSpec& spec_;
  mem::Rings& rings_;
  Plan& plan_;
  Peer& peer_;
  std::string device_;
  const char* what_;
  std::chrono::milliseconds patience_;
  std::vector<mem::RingOrder> orders_;
  bool ordered_ = false;  ///< a bandwidth run's limit
  std::uint64_t sent_ = 0;
  std::uint64_t rounds_ = 0;
  std::uint64_t sampled_ = 0;
  stats::Histogram histogram_;
};

}  // namespace gdrperf::engine
