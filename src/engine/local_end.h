#pragma once

#include <memory>
#include <optional>
#include <string>

#include "gdrperf/conn/connector.h"
#include "gdrperf/engine/op_traits.h"
#include "gdrperf/mem/buffer.h"
#include "gdrperf/proto/messages.h"
#include "gdrperf/proto/spec.h"
#include "gdrperf/verbs/device.h"
#include "gdrperf/verbs/gid.h"
#include "gdrperf/verbs/resources.h"
#include "affinity.h"
#include "plan.h"
#include "port_watch.h"
#include "set_up_steps.h"

namespace gdrperf::engine {

/// The device, port and GID table that one end will use: known before the peer
/// has been asked anything.
struct OpenDevice {
  verbs::Context context;
  verbs::PortInfo port;
  std::vector<verbs::Gid> gids;
};

/// Opens what `end` names. Throws Error (unknown device, port not active).
OpenDevice open_device(const EndSpec& end, conn::Side side);

/// Chooses our GID among the families the peer offers. InfiniBand ports without
/// a matching table fall back on LIDs through the same call.
verbs::GidChoice choose_gid(const OpenDevice& device, const EndSpec& end, conn::Side side,
                            std::span<const std::string> peer_families);

/// The path MTU to use: what was asked for, if both ports carry it, else the
/// lesser of both active MTUs.
int agree_mtu(int requested_bytes, const verbs::PortInfo& port, int peer_active_bytes);

/// Everything one end of a run owns, from the buffer to connected QPs. Lives on
/// one thread.
class LocalEnd {
 public:
  /// `spec` is resolved; `mtu_bytes` agreed; `others_cpus` are those of the other
  /// end where it is on this host. Makes all but the connection.
  LocalEnd(conn::Side side, const ResolvedSpec& spec, OpenDevice device, const verbs::GidChoice& gid, int mtu_bytes,
           const std::vector<int>& others_cpus, const SetUpSteps& steps = {});
  LocalEnd(const LocalEnd&) = delete;
  LocalEnd& operator=(const LocalEnd&) = delete;

  /// What the peer has to know.
  const proto::Endpoint& endpoint() const { return endpoint_; }
  /// Largest message sent inline (0: none).
  int inline_bytes() const { return inline_bytes_; }

  /// Connects all QPs, builds the plan and posts the receives.
  void connect(const proto::Endpoint& remote);

  Plan& plan() { return *plan_; }
  mem::Buffer& buffer() { return *buffer_; }
  // What a Pipeline works on.
  ibv_qp* qp() const { return connector_->qps().front(); }
  ibv_cq* send_cq() const { return send_cq_.get(); }
  ibv_cq* recv_cq() const { return recv_cq_.get(); }
  std::uint32_t lkey() const { return mr_->lkey; }
  const proto::Endpoint& remote() const { return remote_; }
  std::byte* initiator_area() const { return initiator_area_; }
  std::byte* target_area() const { return target_area_; }
  /// A staged end's slots in host memory, for what leaves and what arrives;
  /// null at other ends.
  std::byte* out_slot(std::uint64_t slot) const;
  std::byte* in_slot(std::uint64_t slot) const;
  bool initiates() const;
  bool is_target() const;
  /// Where in the buffer the messages lie that leave this end, and those that
  /// arrive here; nullopt: none do.
  std::optional<std::uint64_t> source_offset() const;
  std::optional<std::uint64_t> sink_offset() const;
  /// A round of a latency test ends with the last byte in memory, which holds
  /// the round's number.
  bool waits_on_memory() const;
  /// CPUs this process may use, wherever this end is pinned.
  int process_cpus() const { return affinity_.process_cpus(); }
  /// The other end is on this host and on this end's CPU.
  bool shares_cpu() const { return same_host(endpoint_, remote_) && endpoint_.cpu == remote_.cpu; }
  Events events() const { return {completion_channel_.get()}; }
  const std::string& device() const { return device_.context.name(); }
  PortWatch& port_watch() { return port_watch_; }

 private:
  /// Destroys the QPs before the CQs, MR and PD that they use, also when the
  /// constructor fails half way: declared after those. Memory goes in front of its MR: the
  /// software device would copy gigabytes back that nobody wants.
  struct QpRelease {
    LocalEnd& end;
    ~QpRelease() {
      if (end.connector_) end.connector_->destroy_qps();
      if (end.buffer_) end.buffer_->let_go();
      if (end.bounce_) end.bounce_->let_go();
    }
  };

  void register_memory(int access);
  int wire_access() const;
  std::optional<std::uint64_t> offset_of(const std::byte* area) const;
  int choose_inline();
  void make_queues();
  void fill_endpoint(const verbs::GidChoice& gid, int mtu_bytes);

  conn::Side side_;
  const ResolvedSpec spec_;
  SetUpSteps steps_;
  OpenDevice device_;
  PortWatch port_watch_{device_.context, device_.port.number};
  AffinityScope affinity_;  // in front of the buffer: it lies where it is touched first
  std::unique_ptr<conn::Connector> connector_;  // first: it holds the verbs context
  verbs::Pd pd_;
  std::unique_ptr<mem::Buffer> buffer_;
  std::unique_ptr<mem::Buffer> bounce_;  // staged ends: what is registered
  verbs::Mr mr_;
  verbs::CompletionChannel completion_channel_;
  verbs::Cq send_cq_;
  verbs::Cq recv_cq_;
  QpRelease qp_release_{*this};
  int inline_bytes_ = 0;
  std::byte* initiator_area_ = nullptr;
  std::byte* target_area_ = nullptr;
  proto::Endpoint endpoint_;
  proto::Endpoint remote_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace gdrperf::engine
