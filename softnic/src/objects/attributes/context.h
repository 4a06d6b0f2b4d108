#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "device/device.h"
#include "gdrperf/base/mutex.h"
#include "host/process/local.h"
#include "host/process/process.h"

namespace gdrperf::softnic {

struct Context;
struct Mw;
namespace mlx5 {
struct Nic;
}

/// The functions behind a context's verbs: of one that is open, and of one that a
/// forked child inherited; `post_send` is chosen anew where the device's model changes.
struct ContextOps {
  void (*live)(Context& context);
  void (*post_send)(Context& context);
  void (*dead)(Context& context);
};

/// An open device. Its `ops` are what ibv_post_send and its kin go through.
struct Context final : verbs_context, LocalContext {
  /// Throws Error when the process cannot be set up.
  Context(Device& opened, const ContextOps& functions);
  ~Context();

  static Context& of(ibv_context* context) {
    // ibv_context is the last member of verbs_context.
    auto* bytes = reinterpret_cast<std::uint8_t*>(context);
    return *static_cast<Context*>(
        reinterpret_cast<verbs_context*>(bytes - offsetof(verbs_context, context)));
  }
  bool modelled() const { return device.model.load() != nullptr; }
  /// Posts may take more than one step: those of a model, or over TCP.
  bool in_steps() const { return modelled() || device.config.tcp_port != 0; }
  bool null_mode() const { return device.config.mode == DeviceMode::kNull; }
  /// Of this process, not of one it was forked from.
  bool alive() const { return Process::is_current(&process); }
  /// In a forked child: data path calls fail from now on.
  void cut_off() override;

  /// The device was given a model, or another one (control thread).
  void follow_model() override;
  void raise(const ibv_async_event& event) override;
  int next_event(ibv_async_event& event);
  /// Drops queued events of an object that is being destroyed.
  void drop_events(const void* element);

  Device& opened() const noexcept override { return device; }

  Device& device;
  Process& process;
  std::atomic<int> qps{0};
  const std::unique_ptr<mlx5::Nic> nic;  ///< with mlx5=on
  std::atomic<std::uint64_t> last_post{0};  ///< Instant, on any QP with a link's model

 private:
  void publish_ports();

  const ContextOps functions_;
  Mutex mutex_;
  std::deque<ibv_async_event> events_ GUARDED_BY(mutex_);
};

/// True when the context, and so its objects, is ours.
bool is_soft(const ibv_context* context);

/// True for the cmd_fd of a context of ours, in whatever process it was opened.
bool is_command_descriptor(int fd);

struct Pd : ibv_pd {
  /// Of a parent domain: the one that it was made of.
  static Pd& of(ibv_pd* pd) {
    auto* ours = static_cast<Pd*>(pd);
    return ours->base != nullptr ? *ours->base : *ours;
  }
  Pd* base = nullptr;
  std::uint32_t number;
  std::atomic<int> users{0};
  /// Held while a window is bound, and while a region becomes invalid.
  Mutex windows_mutex;
  std::vector<Mw*> windows GUARDED_BY(windows_mutex);
};

}  // namespace gdrperf::softnic
