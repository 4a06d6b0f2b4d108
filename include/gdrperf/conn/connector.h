#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gdrperf/proto/messages.h"
#include "gdrperf/verbs/device.h"
#include "gdrperf/verbs/driver_qp.h"
#include "gdrperf/verbs/gid.h"
#include "gdrperf/verbs/resources.h"

namespace gdrperf::conn {

enum class Side { kClient, kServer };

/// Parameters that all QPs of a run share.
struct QpSettings {
  ibv_qp_init_attr init{};
  std::vector<ibv_cq*> send_cqs = {};  ///< one for each QP; empty: that of `init` for all
  verbs::Inlining inlining = verbs::Inlining::kExactly;  ///< of what `init` asks to be sent inline
  int count = 1;
  int pkey_index = 0;
  int access = 0;         ///< remote access rights, ibv_access_flags
  verbs::QpPath path;     ///< what was asked for of the path; where the peer is comes later
  std::vector<int> flow_labels;  ///< that the QPs take in turn; empty: that of `path`
  Use ece = Use::kOff;
  bool ooo = false;              ///< QPs that place packets out of order (verbs/mlx5.h)
  std::vector<int> lag_ports;    ///< that the QPs take in turn; empty: the device chooses
  ibv_xrcd* xrc_domain = nullptr;      ///< XRC: of the QPs that answer the peer's
  std::optional<verbs::DriverKind> driver;  ///< QPs of a maker's own library
  std::uint64_t send_ops = 0;               ///< of `driver`: IBV_QP_EX_WITH_* of all requests
  std::vector<ibv_srq*> target_srqs;        ///< DC: that the targets take, round-robin
  std::optional<ibv_gid> own_group;    ///< multicast that comes here; none: none does
  std::optional<ibv_gid> peers_group;  ///< multicast that the peer receives
  int max_rd_atomic = 1;  ///< what the device can, before the peer's limit
  int max_dest_rd_atomic = 1;
};

/// How the QPs of one end reach RTS. Calls come in this order: context(),
/// prepare(), connect(), qps(), destroy_qps(). One thread.
///
/// The connector outlives PD, CQ and MR (they live on its context), and the QPs
/// go before them: call destroy_qps() first when tearing down.
class Connector {
 public:
  virtual ~Connector() = default;

  /// The context that every other object of the run is made on.
  virtual ibv_context* context() const = 0;

  /// Makes what can be made before the peer is known and puts into `local` what
  /// the peer needs: QPNs, PSNs and what the QPs offer of ECE, or where rdma_cm listens.
  virtual void prepare(ibv_pd* pd, const QpSettings& settings, proto::Endpoint& local) = 0;

  /// Brings all QPs to RTS; `mtu_bytes` is the path MTU both ends agreed on.
  /// Throws Error within 10 s when the peer doesn't follow.
  virtual void connect(const proto::Endpoint& local, const proto::Endpoint& remote) = 0;

  /// In the order of the peer's: QP i talks to its QP i.
  virtual std::span<ibv_qp* const> qps() const = 0;

  /// Way to the peer's QPs, for datagrams; null: QPs are connected. After connect().
  virtual ibv_ah* address_handle() const { return nullptr; }

  /// What the device granted each of them to be sent inline; after connect().
  virtual int inline_bytes() const = 0;

  /// The client connects first and tells the server what its QPs took of the server's offer. After prepare().
  virtual bool answers_ece(const proto::Endpoint&, const proto::Endpoint&) const { return false; }

  /// What the QPs agreed on; after connect().
  virtual proto::Ece ece() const = 0;

  virtual void destroy_qps() noexcept = 0;
};

/// Addresses travel over the control channel. `device` must outlive it.
std::unique_ptr<Connector> make_exchange_connector(Side side, const verbs::Context& device);

/// rdma_cm: the server listens on the address of `gid`, the client calls from
/// its own. Throws Error(kEnvironment) where rdma_cm is not to be had or the
/// GID carries no IP address.
std::unique_ptr<Connector> make_rdma_cm_connector(Side side, const verbs::Context& device,
                                                  const verbs::Gid& gid);

/// 32 hex digits <-> raw GID; gid_from_hex throws peer_error on anything else.
std::string gid_to_hex(const ibv_gid& gid);
ibv_gid gid_from_hex(const std::string& hex);

}  // namespace gdrperf::conn
