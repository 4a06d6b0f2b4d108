#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <functional>

#include "device/device.h"
#include "gdrperf/base/unique_fd.h"
#include "model/link.h"
#include "shared/segment/layout.h"
#include "shared/segment/request.h"

/// The process's, its thread's and its peers' view of the QPs and
/// contexts that it has, and its thread of the process: each of them knows what it
/// works for, not the other way round.
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

class Agents;
class Ports;
class Strangers;

/// The process, as its control thread sees it. Thread-safe.
class LocalProcess {
 public:
  virtual std::uint64_t id() const noexcept = 0;
  virtual Segment& segment() noexcept = 0;
  /// Descriptors for peers: the segment, and the window, or -1 where there is none.
  virtual int segment_fd() noexcept = 0;
  virtual int window_fd() noexcept = 0;
  virtual int channel_fd(std::uint32_t number) = 0;
  virtual void for_each_qp(const std::function<void(LocalQp&)>& visit) = 0;
  virtual void with_qp(std::uint32_t index, const std::function<void(LocalQp&)>& visit) = 0;
  virtual void for_each_context(const std::function<void(LocalContext&)>& visit) = 0;
  /// Drops the peers whose processes have ended.
  virtual void forget_gone_peers() = 0;
  /// Cleans up after a process that has ended: its lanes are free, and what it left is repaired.
  virtual void free_lanes_of(std::uint64_t process_id) = 0;
  virtual Ports& ports() noexcept = 0;
  virtual Agents& agents() noexcept = 0;
  virtual Strangers& strangers() noexcept = 0;
  /// Another process of this host has accepted a connection for this one.
  virtual void take_connection(UniqueFd socket) = 0;

 protected:
  ~LocalProcess() = default;
};

/// Watches descriptors for others (Control).
class DescriptorWatch {
 public:
  /// Reports what becomes readable to Ports::handle.
  virtual void watch_fd(int fd) = 0;

 protected:
  ~DescriptorWatch() = default;
};

}  // namespace gdrperf::softnic
