#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gdrperf/engine/streams.h"
#include "gdrperf/mem/copier.h"
#include "gdrperf/proto/spec.h"
#include "local_end.h"
#include "mover.h"
#include "peer.h"

namespace gdrperf::engine {

/// Messages cut into chunks that go through up to three stages at once: a copy
/// from GPU memory into pinned host memory, a write with immediate into the
/// other end's pinned memory, a copy from there into its GPU. An end that is
/// not staged leaves its copy out. The receiver gives a slot back, by a send
/// without data that carries the number of chunks landed, when its copy has
/// ended; with --consume, when the GPU has computed on the message as well. So
/// a message counts when it is where it is to be.
class Pipeline final : public Mover {
 public:
  Pipeline(conn::Side side, LocalEnd& end, const TestSpec& spec, Peer& peer);

  std::optional<proto::Message> send_until(std::uint64_t goal) override;
  std::optional<proto::Message> receive_until(std::uint64_t goal) override;
  std::optional<proto::Message> bounce_until(std::uint64_t goal) override;
  std::optional<proto::Message> send_lap(std::uint64_t messages) override;
  void drain() override;
  const std::uint64_t& sent() const override { return sent_; }
  const std::uint64_t& received() const override { return received_; }
  const std::uint64_t& rounds() const override { return rounds_; }
  bool receives() const override { return side_ == conn::Side::kServer; }
  std::vector<std::uint64_t> posted_messages() const override { return {started_}; }

  /// Sender, before a bandwidth run: tries chunk sizes and keeps the fastest.
  void choose_chunk();
  std::uint64_t chunk_bytes() const { return chunk_; }

 private:
  struct Chunk {
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;  ///< in the source area
    bool last = false;         ///< of its message
  };

  void post_receives();
  bool step();
  bool reap_receives();
  bool reap_sends();
  bool issue();
  bool post_ready();
  void post_chunk(const Chunk& chunk);
  void arrived(std::uint64_t bytes);
  bool land();
  void tell_credit();
  void post(ibv_send_wr& request);
  [[noreturn]] void fail(const ibv_wc& wc, const char* what);
  template <typename Done>
  std::optional<proto::Message> step_until(Done done);

  conn::Side side_;
  LocalEnd& end_;
  const TestSpec& spec_;
  Peer& peer_;
  WireShape wire_;
  Layout layout_;
  std::string device_;
  std::unique_ptr<mem::Copier> out_;  ///< null: this end's data is on the wire as it lies
  std::unique_ptr<mem::Copier> in_;
  std::uint64_t chunk_;
  bool peer_staged_;

  // Sender. Counts of chunks but for started_, limit_ and sent_: messages.
  std::vector<Chunk> issued_ring_;
  std::uint64_t started_ = 0;   ///< whose last chunk has been issued
  std::uint64_t limit_ = 0;     ///< that may be started
  std::uint64_t issue_offset_ = 0;
  std::uint64_t issued_ = 0;
  std::uint64_t posted_ = 0;
  std::uint64_t completed_ = 0;  ///< reaped from the send CQ
  std::uint64_t credited_ = 0;
  std::uint64_t sent_ = 0;

  // Receiver.
  std::vector<bool> last_ring_;
  std::uint64_t arrive_message_ = 0;
  std::uint64_t arrive_offset_ = 0;
  std::uint64_t arrived_ = 0;
  std::uint64_t landed_ = 0;
  std::uint64_t told_ = 0;
  std::uint64_t credits_in_flight_ = 0;
  std::uint64_t received_ = 0;

  std::uint64_t rounds_ = 0;
};

}  // namespace gdrperf::engine
