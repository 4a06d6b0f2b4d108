#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/setup/affinity.h"
#include "engine/setup/demand.h"
#include "gdrperf/conn/connector.h"
#include "gdrperf/engine/resolve.h"
#include "gdrperf/mem/buffer.h"
#include "gdrperf/proto/messages.h"
#include "gdrperf/verbs/device.h"
#include "gdrperf/verbs/gid.h"
#include "gdrperf/verbs/resources.h"
#include "gdrperf/verbs/hints.h"
#include "gdrperf/verbs/xrc.h"
#include "engine/transfer/transfer.h"
#include "engine/watch/peer.h"
#include "engine/watch/port_watch.h"
#include "engine/setup/set_up_steps.h"

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

/// Throws usage_error naming the size where a datagram of it is larger than the MTU that both ports carry.
void check_datagram(const TestSpec& spec, int mtu_bytes);

/// Parts of one end.
struct EndInput {
  conn::Side side;
  const ResolvedSpec& spec;
  OpenDevice device;
  const verbs::GidChoice& gid;
  int mtu_bytes;                ///< agreed
  std::vector<int> others_cpus = {};  ///< of the other end, where it is on this host
  SetUpSteps steps = {};
  conn::Side opener = conn::Side::kClient;  ///< who sends the first message of a latency test
  std::optional<proto::Endpoint> accepted = {};  ///< the other end, where that has chosen already
};

/// Why this end's QPs cannot place packets out of order, naming the device; "": they can.
std::string keeps_order(const ResolvedSpec& spec, conn::Side side, ibv_context* device);

/// Everything one end of a run owns, from the buffer to connected QPs. Lives on
/// one thread. How data travels is what its two kinds, StreamingEnd and StagingEnd,
/// differ in; make_end() (data_path.h) makes the one that a spec asks for.
class LocalEnd {
 public:
  virtual ~LocalEnd() = default;
  LocalEnd(const LocalEnd&) = delete;
  LocalEnd& operator=(const LocalEnd&) = delete;

  /// For the peer.
  const proto::Endpoint& endpoint() const { return endpoint_; }
  /// To be done in front of telling the peer this end's endpoint, not behind.
  bool connects_first(const proto::Endpoint& remote) const { return connector_->answers_ece(endpoint_, remote); }
  /// What was asked for where it could be had, and could not; after connect().
  const std::vector<std::string>& notes() const { return notes_; }

  /// Connects all QPs and gets ready for the peer's messages.
  void connect(const proto::Endpoint& remote);
  /// Largest message sent inline (0: none). After connect().
  int inline_bytes() const { return inline_bytes_; }
  /// Transfer of this end's messages, after connect(). Borrows the end and `peer`.
  virtual std::unique_ptr<Transfer> make_transfer(Peer& peer) = 0;

  conn::Side side() const { return side_; }
  conn::Side opener() const { return opener_; }
  const ResolvedSpec& spec() const { return spec_; }
  mem::Buffer& buffer() { return *buffer_; }
  const mem::Buffer& buffer() const { return *buffer_; }
  bool initiates() const { return spec_.initiates(side_); }
  bool is_target() const { return spec_.is_target(side_); }
  /// Places in the buffer of the messages that leave this end, and of those that
  /// arrive here; nullopt: none do.
  std::optional<std::uint64_t> source_offset() const;
  std::optional<std::uint64_t> sink_offset() const;
  /// CPUs this process may use, wherever this end is pinned.
  int process_cpus() const { return affinity_.process_cpus(); }
  OtherCpus unbound() const { return affinity_.unbound(); }
  /// The other end is on this host and on this end's CPU.
  bool shares_cpu() const { return same_host(endpoint_, remote_) && endpoint_.cpu == remote_.cpu; }
  const std::string& device() const { return device_.context.name(); }
  PortWatch& port_watch() { return port_watch_; }

  // Resources of a transfer, after connect().
  std::span<ibv_qp* const> qps() const { return connector_->qps(); }
  ibv_ah* address_handle() const { return connector_->address_handle(); }
  ibv_cq* send_cq() const { return send_cq_.get(); }
  ibv_cq* recv_cq() const { return recv_cq_.get(); }
  /// Of each QP where they have one of their own; else empty.
  const std::vector<ibv_cq*>& send_cqs() const { return own_cqs_; }
  /// Shared receive queues: one for all QPs, or (XRC) one for each; empty: QPs have receives of their own.
  std::vector<ibv_srq*> srqs() const;
  ibv_comp_channel* completion_channel() const { return completion_channel_.get(); }
  std::uint32_t lkey() const { return mr_->lkey; }
  /// Of the QPs' work requests, round-robin.
  std::vector<std::uint32_t> lkeys() const;
  const proto::Endpoint& remote() const { return remote_; }
  std::byte* initiator_area() const { return initiator_area_; }
  std::byte* target_area() const { return target_area_; }

 protected:
  /// Throws Error(kEnvironment) where the device has no atomics.
  void check_atomics() const;
  /// Throws Error(kEnvironment) where memory cannot be registered for on-demand paging.
  void check_odp() const;
  /// All but what the NIC is given: a kind's constructor goes on with register_memory(),
  /// offer() and make_queues(), in this order.
  explicit LocalEnd(EndInput input);

  /// `staging` is registered in place of the buffer, where there is any.
  void register_memory(int access, std::unique_ptr<mem::Buffer> staging = nullptr);
  mem::Buffer* staging() const { return staging_.get(); }
  /// The peer may reach this part of what is registered.
  void offer(const std::byte* at, std::uint64_t bytes);

  struct QueueRights {
    int access = 0;  ///< the peer's, ibv_access_flags
    int inline_bytes = 0;
    verbs::Inlining inlining = verbs::Inlining::kExactly;
  };
  void make_queues(const QueueRights& rights);
  /// For the peer, and the record.
  void note_doorbells(const std::string& doorbells) { endpoint_.doorbells = doorbells; }

  /// Throws peer_error where the peer offers less than `bytes`.
  void check_offered(std::uint64_t bytes) const;
  /// QPs are in RTS: the last of connect().
  virtual void connected() = 0;

 private:
  /// Destroys the QPs before the CQs, MR and PD that they use, also when the
  /// constructor fails half way: declared after those. Memory goes in front of its MR: the
  /// software device would copy gigabytes back that nobody wants.
  struct QpRelease {
    LocalEnd& end;
    ~QpRelease() {
      if (end.connector_) end.connector_->destroy_qps();
      if (end.buffer_) end.buffer_->let_go();
      if (end.staging_) end.staging_->let_go();
    }
  };

  /// Of memory that was registered: what the record says of PCIe relaxed ordering. Throws Error where it was asked for
  /// and cannot be.
  std::string ordering() const;
  std::optional<std::uint64_t> offset_of(const std::byte* area) const;
  /// Data comes to the end that initiates.
  bool pulls() const;
  void fill_endpoint(const verbs::GidChoice& gid, int mtu_bytes);
  void note_ece(const proto::Endpoint& remote);
  void make_srqs(const Demand& demand);
  void make_own_cqs(int entries);
  /// Groups of a multicast test.
  void fill_groups(conn::QpSettings& settings) const;
  /// Both ends' QPs place packets out of order, or none.
  bool places_out_of_order();

  conn::Side side_;
  conn::Side opener_;
  const ResolvedSpec spec_;
  SetUpSteps steps_;
  OpenDevice device_;
  PortWatch port_watch_{device_.context, device_.port.number};
  std::optional<proto::Endpoint> accepted_;
  AffinityScope affinity_;  // in front of the buffer: it lies where it is touched first
  std::unique_ptr<conn::Connector> connector_;  // first: it holds the verbs context
  verbs::Pd pd_;
  verbs::ThreadDomain thread_domain_;  ///< none: the provider takes its locks
  verbs::Pd parent_domain_;
  std::unique_ptr<mem::Buffer> buffer_;
  std::unique_ptr<mem::Buffer> staging_;
  verbs::DmaHandle hints_;  ///< none: memory is registered without
  verbs::Mr mr_;
  std::vector<verbs::Mr> more_mrs_;  ///< of the second QP and those behind it; empty: they share `mr_`
  verbs::Mr null_mr_;  ///< of this end's own work requests; none: that of the buffer
  verbs::CompletionChannel completion_channel_;
  verbs::Cq send_cq_;
  verbs::Cq recv_cq_;
  std::vector<verbs::Cq> more_cqs_;
  std::vector<ibv_cq*> own_cqs_;  ///< see send_cqs()
  verbs::XrcDomain xrc_domain_;    ///< none: not XRC
  std::vector<verbs::Srq> srqs_;  ///< see srqs()
  QpRelease qp_release_{*this};
  QueueRights rights_;
  int inline_bytes_ = 0;
  std::byte* initiator_area_ = nullptr;
  std::byte* target_area_ = nullptr;
  proto::Endpoint endpoint_;
  proto::Endpoint remote_;
  std::vector<std::string> notes_;
};

}  // namespace gdrperf::engine
