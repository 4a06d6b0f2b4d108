#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <memory>

#include "mlx5/rings.h"
#include "objects/attributes/context.h"
#include "shared/sync/ring.h"
#include "shared/sync/spin.h"

namespace gdrperf::softnic {

/// A ring of receives in the segment and the lock of those who post to it.
/// Used by a QP for its own receives and by an SRQ.
struct RecvQueue {
  /// kMany: the peers of many QPs take from it. One that is slow leaves a hole,
  /// which serves again only in the next lap: the ring has cells to spare then.
  enum class Takers { kOne, kMany };
  /// Throws VerbsFailure(ENOMEM).
  RecvQueue(Process& process, std::uint32_t max_wr, std::uint32_t max_sge, Takers takers);
  ~RecvQueue();
  RecvQueue(const RecvQueue&) = delete;
  RecvQueue& operator=(const RecvQueue&) = delete;
  /// Keeps its memory until the process ends.
  static void keep(std::unique_ptr<RecvQueue> queue);

  /// 0, EINVAL (too many SGEs) or ENOMEM (full); posts up to *bad.
  int post(ibv_recv_wr* request, ibv_recv_wr** bad) noexcept;
  /// Forgets everything posted. No consumer may be active.
  void clear();

  Process& process;
  std::uint64_t place = 0;  ///< of the ring, as peers find it
  RecvRing ring;
  std::uint32_t max_posted = 0;  ///< receives at a time
  FavouringSpin lock;
};

struct Srq : ibv_srq, mlx5::Watched {
  Srq(Pd& owner, const ibv_srq_init_attr& attr);  // throws VerbsFailure
  virtual ~Srq();
  static Srq& of(ibv_srq* srq) { return *static_cast<Srq*>(srq); }

  // --- a ring in mlx5's format (objects/mlx5/srq_ring.cc)
  void lay_out_ring();  // throws std::bad_alloc
  int watch_ring();
  int post_ring(ibv_recv_wr* request, ibv_recv_wr** bad) noexcept;
  bool look(bool rung) noexcept override;

  RecvQueue queue;
  std::unique_ptr<mlx5::WorkQueues> rings;  ///< null without mlx5=on
  ibv_srq_attr attributes;
  /// A limit was set and has not been reported.
  std::atomic<bool> limit_set{false};
  std::atomic<int> users{0};

 private:
  unsigned take_receives() noexcept;
};

}  // namespace gdrperf::softnic
