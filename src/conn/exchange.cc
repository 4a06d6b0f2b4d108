#include <algorithm>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/conn/connector.h"
#include "gdrperf/proto/flow.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/verbs/ece.h"
#include "gdrperf/verbs/mlx5.h"
#include "gdrperf/verbs/resources.h"
#include "gdrperf/verbs/xrc.h"

namespace gdrperf::conn {
namespace {

constexpr std::uint32_t kPsnMask = 0xffffff;

class ExchangeConnector final : public Connector {
 public:
  ExchangeConnector(Side side, const verbs::Context& device) : side_(side), context_(device.get()) {}

  ibv_context* context() const override { return context_; }

  void prepare(ibv_pd* pd, const QpSettings& settings, proto::Endpoint& local) override {
    settings_ = settings;
    pd_ = pd;
    std::random_device random;
    for (int i = 0; i < settings.count; ++i) {
      if (!settings_.send_cqs.empty()) settings_.init.send_cq = settings_.send_cqs[static_cast<std::size_t>(i)];
      owners_.push_back(make_qp());
      qps_.push_back(owners_.back().get());
      if (settings_.driver)
        verbs::driver_qp_to_init(qps_.back(), *settings_.driver, local.port, settings.pkey_index);
      else
        verbs::to_init(qps_.back(), local.port, settings.access, settings.pkey_index);
      local.qps.push_back({qps_.back()->qp_num, random() & kPsnMask});
    }
    for (int i = 0; settings_.xrc_domain != nullptr && i < settings.count; ++i) {
      responders_.push_back(verbs::make_xrc_responder(context_, settings_.xrc_domain));
      verbs::to_init(responders_.back().get(), local.port, settings.access, settings.pkey_index);
      local.xrc.push_back({responders_.back()->qp_num, 0});
    }
    if (settings_.driver == verbs::DriverKind::kDc) make_targets(local);
    if (settings_.ece == Use::kOff) return;
    local.ece = verbs::query_ece(qps_.front());
    if (settings_.ece == Use::kOn && !local.ece) throw verbs::no_ece(local.device);
  }

  void connect(const proto::Endpoint& local, const proto::Endpoint& remote) override {
    if (remote.qps.size() != qps_.size()) {
      throw peer_error(fmt::format("the peer offers {} QPs, this host has {}", remote.qps.size(), qps_.size()));
    }
    if (remote.xrc.size() != responders_.size()) {
      throw peer_error(
          fmt::format("the peer offers {} QPs that answer, this host has {}", remote.xrc.size(), responders_.size()));
    }
    verbs::QpPath path = own_path(local);
    // perftest's ends on InfiniBand have none, and go by LID.
    path.global = !remote.gid_raw.empty();
    if (path.global) path.remote_gid = gid_from_hex(remote.gid_raw);
    path.remote_lid = static_cast<std::uint16_t>(remote.lid);
    path.max_rd_atomic = std::clamp(std::min(settings_.max_rd_atomic, remote.max_rd_atomic), 1, 255);
    path.max_dest_rd_atomic = settings_.max_dest_rd_atomic;
    if (settings_.init.qp_type == IBV_QPT_UD || settings_.driver) {
      if (settings_.peers_group) path.remote_gid = *settings_.peers_group;
      address_handle_ = verbs::make_address_handle(pd_, path);
    }
    for (std::size_t i = 0; i < qps_.size(); ++i) {
      path.remote_qpn = responders_.empty() ? remote.qps[i].qpn : remote.xrc[i].qpn;
      path.remote_psn = remote.qps[i].psn & kPsnMask;
      path.local_psn = local.qps[i].psn & kPsnMask;
      const std::vector<int>& labels = settings_.flow_labels;
      if (!labels.empty()) path.flow_label = labels[i % labels.size()];
      if (settings_.driver) {
        verbs::driver_qp_to_rts(qps_[i], *settings_.driver, path);
        routes_.push_back(
            std::make_unique<verbs::DriverRoute>(qps_[i], *settings_.driver, address_handle_.get(), path.remote_qpn));
        continue;
      }
      if (local.ece && remote.ece) take_ece(qps_[i], remote);
      verbs::to_rts(qps_[i], path);
      if (!responders_.empty()) {
        path.remote_qpn = remote.qps[i].qpn;
        verbs::to_rts(responders_[i].get(), path);
      }
      // Older kernels make no source port of the label; where this fails it counts all the same.
      if (!labels.empty() && settings_.init.qp_type != IBV_QPT_UD)
        verbs::set_udp_source_port(qps_[i], udp_source_port(path.flow_label));
      if (!settings_.lag_ports.empty())
        verbs::set_lag_port(qps_[i], settings_.lag_ports[i % settings_.lag_ports.size()]);
    }
    if (settings_.own_group) {
      verbs::join(qps_.front(), *settings_.own_group);
      joined_ = true;
    }
    if (takes_ece_) ece_ = verbs::query_ece(qps_.front());
  }

  std::span<ibv_qp* const> qps() const override { return qps_; }

  // Of a driver's QPs the route has it, in place of the requests.
  ibv_ah* address_handle() const override { return settings_.driver ? nullptr : address_handle_.get(); }

  int inline_bytes() const override { return static_cast<int>(settings_.init.cap.max_inline_data); }

  bool answers_ece(const proto::Endpoint& local, const proto::Endpoint& remote) const override {
    return local.ece && remote.ece;
  }

  proto::Ece ece() const override { return ece_; }

  void destroy_qps() noexcept override {
    if (joined_) verbs::leave(qps_.front(), *settings_.own_group);
    joined_ = false;
    routes_.clear();
    qps_.clear();
    responders_.clear();
    owners_.clear();
    address_handle_.reset();
  }

 private:
  verbs::Qp make_qp() {
    if (settings_.driver)
      return verbs::make_driver_qp(pd_, settings_.init, *settings_.driver, settings_.send_ops, settings_.inlining);
    if (settings_.xrc_domain != nullptr) return verbs::make_xrc_sender(pd_, settings_.init, settings_.inlining);
    return settings_.ooo ? verbs::make_out_of_order_qp(pd_, settings_.init, settings_.inlining)
                         : verbs::make_qp(pd_, settings_.init, settings_.inlining);
  }

  verbs::QpPath own_path(const proto::Endpoint& local) const {
    verbs::QpPath path = settings_.path;
    path.port = static_cast<std::uint8_t>(local.port);
    path.gid_index = static_cast<std::uint8_t>(local.gid_index);
    path.mtu_bytes = local.mtu_bytes;
    return path;
  }

  /// They have numbers once they are ready to answer, whoever asks.
  void make_targets(proto::Endpoint& local) {
    verbs::QpPath path = own_path(local);
    path.remote_gid = gid_from_hex(local.gid_raw);
    path.remote_lid = static_cast<std::uint16_t>(local.lid);
    const std::vector<ibv_srq*>& queues = settings_.target_srqs;
    for (std::size_t i = 0; i < qps_.size(); ++i) {
      responders_.push_back(verbs::make_dc_target(pd_, settings_.init.recv_cq, queues[i % queues.size()]));
      verbs::answer_dc(responders_.back().get(), path, settings_.access, settings_.pkey_index);
      local.xrc.push_back({responders_.back()->qp_num, 0});
    }
  }

  /// What the client took its server takes as well: with one end alone the two would not understand each other.
  void take_ece(ibv_qp* qp, const proto::Endpoint& remote) {
    const int error = verbs::set_ece(qp, remote.ece);
    takes_ece_ = error == 0;
    if (takes_ece_ || (side_ == Side::kClient && settings_.ece == Use::kAuto)) return;
    throw call_error(
        fmt::format("ibv_set_ece({})", verbs::to_text(remote.ece)), error, ibv_get_device_name(context_->device),
        fmt::format("the devices are of different makers, or do not agree: leave {} out", flag<&TestSpec::ece>()));
  }

  Side side_;
  ibv_context* context_;
  ibv_pd* pd_ = nullptr;
  QpSettings settings_;
  verbs::AddressHandle address_handle_;
  bool takes_ece_ = false;
  proto::Ece ece_;
  bool joined_ = false;
  std::vector<verbs::Qp> owners_;
  std::vector<verbs::Qp> responders_;  ///< XRC, DC: to the peer's QPs, in their order
  std::vector<std::unique_ptr<verbs::DriverRoute>> routes_;  ///< DC, SRD: of each QP's requests
  std::vector<ibv_qp*> qps_;
};

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::unique_ptr<Connector> make_exchange_connector(Side side, const verbs::Context& device) {
  return std::make_unique<ExchangeConnector>(side, device);
}

std::string gid_to_hex(const ibv_gid& gid) {
  std::string hex;
  for (const std::uint8_t byte : gid.raw) hex += fmt::format("{:02x}", byte);
  return hex;
}

ibv_gid gid_from_hex(const std::string& hex) {
  ibv_gid gid{};
  bool sound = hex.size() == 2 * sizeof gid.raw;
  for (std::size_t i = 0; sound && i < sizeof gid.raw; ++i) {
    const int high = hex_digit(hex[2 * i]);
    const int low = hex_digit(hex[2 * i + 1]);
    sound = high >= 0 && low >= 0;
    gid.raw[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  if (!sound) throw peer_error(fmt::format("the peer's GID '{}' is not 32 hex digits", hex));
  return gid;
}

}  // namespace gdrperf::conn
