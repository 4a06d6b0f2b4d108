#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/transfer/transfer.h"
#include "engine/watch/contention.h"
#include "engine/watch/peer.h"
#include "engine/transfer/streaming_end.h"

namespace gdrperf::engine {

/// The kernels that one run uses, chosen once.
struct Kernels {
  using Function = Outcome (*)(Plan&, Events&, std::uint64_t goal, Fault&);
  Function send = nullptr;      ///< goal: messages completed
  Function recv = nullptr;      ///< goal: messages received
  Function pingpong = nullptr;  ///< goal: rounds
  std::uint32_t polls = 1;      ///< empty ones before the CPU is offered to others
};
/// Whether a kernel that waits keeps its CPU or offers it to others.
enum class Spin { kBusy, kYield };

/// `opener`: who sends the first message of a latency test.
Kernels choose_kernels(const ResolvedSpec& spec, conn::Side side, conn::Side opener, Spin spin);

/// Drives the kernels of one end, looking after the peer whenever they idle.
class StreamingTransfer final : public Transfer {
 public:
  StreamingTransfer(StreamingEnd& end, Peer& peer);

  std::optional<proto::Message> send_until(std::uint64_t goal) override;
  std::optional<proto::Message> receive_until(std::uint64_t goal) override {
    return advance(kernels_.recv, goal, received());
  }
  std::optional<proto::Message> receive_rest(std::uint64_t total) override;
  std::optional<proto::Message> bounce_until(std::uint64_t goal) override {
    return advance(kernels_.pingpong, goal, rounds());
  }

  std::optional<proto::Message> send_lap(const std::vector<std::uint64_t>& messages) override;
  void arm_atomics(const WordOf& word, std::uint64_t step) override { plan_.arm_atomics(word, step); }
  std::optional<Edge> edge() override;
  std::uint64_t least_batch() const override;

  stats::Histogram& histogram() override { return plan_.histogram; }
  void begin_schedule() override;
  Lateness lateness() const override { return {plan_.pingpong.due_rounds, plan_.pingpong.late_rounds}; }
  std::uint64_t early_signals() const override { return plan_.pingpong.early_signals; }
  std::uint64_t rests() const override { return rests_; }
  void be_patient(std::chrono::milliseconds patience) override { patience_ = patience; }
  void drain() override;

  const std::uint64_t& sent() const override { return plan_.send.completed; }
  const std::uint64_t& received() const override { return plan_.recv.received; }
  const std::uint64_t& rounds() const override { return plan_.pingpong.rounds; }

  bool receives() const override { return plan_.receives(); }
  std::vector<std::uint64_t> posted_messages() const override { return plan_.posted_messages(); }

 private:
  enum class Goal {
    kReached,     ///< it comes back then
    kWithinTime,  ///< or when it has taken long, so that the caller can look at its own limits
  };
  void rest_after(int looks);
  std::optional<proto::Message> advance(Kernels::Function kernel, std::uint64_t goal, const std::uint64_t& progress,
                                        Goal until = Goal::kReached);
  std::optional<proto::Message> send_exactly(const std::vector<std::uint64_t>& messages);
  /// Asks now and then whether another program wants this CPU.
  void share_cpu(Kernels::Function kernel, const std::uint64_t& progress);
  /// Sleeps for microseconds where another program wants this CPU. A thread that yields to it waits for milliseconds,
  /// until it has used up its time; a thread that has slept is run again at once.
  void rest(Kernels::Function kernel, const std::uint64_t& progress);
  bool idle_on_schedule() const;
  bool may_post_freely() const { return plan_.send.completed < free_until_; }

  Plan& plan_;
  std::unique_ptr<mem::Relay> relay_;
  std::uint8_t unsent_ = 0;  ///< with a relay, which writes the numbers that are sent
  Events events_;
  Peer& peer_;
  bool may_share_;  ///< it polls and keeps its CPU meanwhile
  double depth_;  ///< messages that a QP holds
  Kernels kernels_;
  ContentionWatch contention_;
  std::uint64_t seen_ = 0;     ///< messages or rounds when it looked last
  double best_per_ns_ = 0;     ///< of them between two looks
  std::uint64_t idle_at_ = 0;  ///< progress since when nothing has come
  double idle_since_ns_ = 0;
  std::uint64_t rests_ = 0;
  std::string device_;
  const char* what_;
  Transport transport_;
  std::chrono::milliseconds patience_;
  bool device_paced_;  ///< the rate is kept by a limit of the QPs
  std::uint64_t limit_;       ///< messages in all
  std::uint64_t free_until_;  ///< completed: until then a kernel cannot post beyond the limit
};

}  // namespace gdrperf::engine
