#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>

#include "device/device.h"
#include "model/link.h"
#include "shared/request.h"

/// What the process, its control thread and its peers' requests need of the
/// QPs and contexts that it has; those know the process, not the other way round.
namespace gdrperf::softnic {

struct StrangerRequest;

class LocalQp {
 public:
  virtual std::uint32_t qp_number() const noexcept = 0;
  virtual Device& device() const noexcept = 0;
  /// Its own memory or its receives' is of this protection domain.
  virtual bool uses_domain(std::uint32_t pd) const noexcept = 0;

  /// No thread of this process executes what it began before.
  virtual void pass_lock() noexcept = 0;
  /// Behind a heavy barrier: no peer does, until `limit`. False: gave up.
  virtual bool await_turn(std::chrono::steady_clock::time_point limit) = 0;
  /// Waits until no thread of this process is flushing receives of this QP.
  virtual void settle_flush() = 0;

  /// One who acted on this QP over a lane has ended: repairs what he left. `tag`: of
  /// what he claimed.
  virtual void repair_lane(std::uint64_t tag) = 0;

  // Control thread.
  /// Moves on what nobody polls for; lowers `next_due` to when this QP has
  /// something due, as far as that is for the thread to care about.
  virtual Progress tick(Instant& next_due) noexcept = 0;
  /// Some peer hung up.
  virtual void check_peer() = 0;
  /// Flushes after the state became ERR, and reports.
  virtual void settle_failure(std::uint32_t event) = 0;
  virtual void report_srq_limit() = 0;
  /// The device's port went up or down.
  virtual void set_port(bool up) = 0;
  /// The link model and its faults apply from now on.
  virtual void follow_model() = 0;

  /// Does what another user's process asks for (Strangers).
  virtual Outcome serve_stranger(const StrangerRequest& request, int memory) noexcept = 0;
  virtual std::uint8_t rnr_timer() const noexcept = 0;

 protected:
  ~LocalQp() = default;
};

class LocalContext {
 public:
  virtual Device& opened() const noexcept = 0;
  /// The device was given a model, or another one (control thread).
  virtual void follow_model() = 0;
  virtual void raise(const ibv_async_event& event) = 0;
  /// In a forked child: data path calls fail from now on.
  virtual void cut_off() = 0;

 protected:
  ~LocalContext() = default;
};

}  // namespace gdrperf::softnic
