#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gdrperf/proto/spec.h"

namespace gdrperf::mem {

/// Who posts to the rings of mlx5 QPs: a kernel on a GPU, or (without one) a thread of the CPU that runs the same code.
struct Poster {
  int gpu = -1;  ///< -1: the CPU
  int blocks = 1;
  int threads = 1;  ///< of a block
  GpuScope scope = GpuScope::kThread;
};

/// One QP and its messages: those of its work request, slot by slot.
struct RingQueue {
  ibv_qp* qp = nullptr;
  ibv_cq* send_cq = nullptr;
  ibv_cq* recv_cq = nullptr;
};
struct RingWork {
  const ibv_send_wr* request = nullptr;  ///< of slot 0, with one piece
  std::uint64_t stride = 0;
  std::uint64_t slots = 1;  ///< a power of two
  std::uint32_t depth = 1;
  std::uint32_t list = 1;
  std::uint32_t signal_every = 1;
};

/// What a latency test's one thread waits for, in memory that its GPU (or the CPU) reaches.
struct RingBounce {
  enum class Ends { kMemory, kReceive, kOwnCompletion };
  Ends ends = Ends::kMemory;
  bool opens = false;
  std::uint8_t* outgoing_last = nullptr;
  const std::uint8_t* incoming_last = nullptr;
  const ibv_send_wr* signal = nullptr;  ///< null: none follows a message
  std::uint8_t* stamps[2] = {};
  const std::uint8_t* expected_stamps[2] = {};
  const ibv_recv_wr* receive = nullptr;  ///< with one piece; posted `receives` times already
  std::uint64_t receives = 0;
};

/// What threads are to do with a queue. Atomics of slot s find `compare` + s * `compare_step`.
struct RingOrder {
  std::uint64_t limit = 0;  ///< messages in all
  std::uint64_t base = 0;   ///< index of the message that takes slot 0
  std::uint64_t operand = 1;
  std::uint64_t compare = 0;
  std::uint64_t compare_step = 0;
};

/// A queue's position, in this host's clock (now_ns()).
struct RingPosition {
  std::uint64_t completed = 0;
  double before_ns = 0;  ///< nothing beyond `completed` had completed; 0: not known
  double after_ns = 0;   ///< all of that had
};

/// What a queue's threads met: the device's syndrome.
struct RingFault {
  std::uint8_t syndrome = 0;
  std::uint8_t vendor = 0;
};

/// The poster's clock compared with the CPU's, at the run's beginning and end.
struct RingClock {
  double apart_ns = 0;       ///< by so much their lengths of the run differed
  double uncertain_ns = 0;   ///< of that, at most
  double seconds = 0;        ///< the run's
};

/// Rings of mlx5 QPs, mapped for a poster, and the threads that post to them. One thread at a time. The QPs outlive it.
class Rings {
 public:
  virtual ~Rings() = default;
  /// "uar": the poster writes into the device's register; "memory": into a page of a device that is software; "cpu": a
  /// CPU thread does it for the GPU, whose driver or device forbids it.
  virtual const std::string& doorbells() const = 0;

  /// Begins posting, as far as orders() allows.
  virtual void start(const std::vector<RingWork>& work, const std::optional<RingBounce>& bounce) = 0;
  /// New orders, one for each queue. Until they reach the threads those before count.
  virtual void orders(const std::vector<RingOrder>& orders) = 0;
  /// Nothing new is posted; over() when all has completed.
  virtual void finish() = 0;
  virtual bool over() const = 0;
  virtual RingPosition position(std::size_t queue) const = 0;
  virtual std::optional<RingFault> fault() const = 0;
  virtual std::uint64_t early_signals() const = 0;
  /// Nanoseconds of round `round`, which has been reported and was no longer ago than sample_count().
  virtual double sample_ns(std::uint64_t round) const = 0;
  virtual std::uint64_t sample_count() const = 0;
  /// After over(), or to end now: threads end, clocks are compared.
  virtual RingClock end() = 0;
};

/// Why this device's rings cannot be had; "": they can.
std::string no_rings(ibv_context* context);

/// Maps the rings. Throws Error(kEnvironment) naming `flag` where libmlx5, the device, the GPU, its kernels or a
/// permission is missing, and says which.
std::unique_ptr<Rings> make_rings(const std::vector<RingQueue>& queues, const Poster& poster, const std::string& flag);

}  // namespace gdrperf::mem
