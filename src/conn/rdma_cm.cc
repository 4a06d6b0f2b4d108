#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/conn/connector.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/verbs/ece.h"
#include "gdrperf/verbs/library.h"
#include "gdrperf/verbs/resources.h"
#include "conn/cm_objects.h"

namespace gdrperf::conn {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kResolveTimeout{2000};
constexpr milliseconds kEventTimeout{8000};

/// Travels with each connect request, so that QP i meets QP i whatever the
/// order in which requests arrive, and strangers are refused.
struct PrivateData {
  std::uint32_t magic;
  std::uint32_t index;
};
constexpr std::uint32_t kMagic = 0x67647270;  // "gdrp"

std::string rdma_cm_hint() {
  return fmt::format(
      "rdma_cm needs the kernel's rdma_ucm module and a GID with an IP address; leave {} out to exchange "
      "addresses over the control connection instead",
      flag<&TestSpec::connector>());
}

class RdmaCmConnector final : public Connector {
 public:
  RdmaCmConnector(Side side, const verbs::Context& device, const verbs::Gid& gid)
      : side_(side), device_(device.name()), gid_(gid) {
    if (gid.link_local) {
      throw Error(ExitCode::kEnvironment,
                  fmt::format("{}: rdma_cm cannot use the link-local GID {}", device_, gid.address), rdma_cm_hint());
    }
    channel_.reset(rdma_create_event_channel());
    if (const std::string missing = verbs::missing_library(); !channel_ && !missing.empty()) {
      throw Error(ExitCode::kEnvironment, fmt::format("{}: {}", flag<&TestSpec::connector>(), missing),
                  verbs::kInstallLibraries);
    }
    if (!channel_) throw call_error("rdma_create_event_channel", errno, device_, rdma_cm_hint());
    first_ = bind_new_id();
    if (first_->verbs == nullptr || device_ != ibv_get_device_name(first_->verbs->device)) {
      throw Error(ExitCode::kEnvironment,
                  fmt::format("{}: rdma_cm finds the address {} on {}", device_, gid.address,
                              first_->verbs ? ibv_get_device_name(first_->verbs->device) : "no device"),
                  fmt::format("choose the GID with {} (or {}) so that its address is this device's alone",
                              own_flag<&EndSpec::gid_index>(), peer_flag<&EndSpec::gid_index>()));
    }
  }

  ~RdmaCmConnector() override { destroy_qps(); }

  ibv_context* context() const override { return first_->verbs; }

  void prepare(ibv_pd* pd, const QpSettings& settings, proto::Endpoint& local) override {
    pd_ = pd;
    settings_ = settings;
    if (side_ == Side::kClient) return;
    if (rdma_listen(first_.get(), settings.count) != 0) throw call_error("rdma_listen", errno, device_, rdma_cm_hint());
    local.cm_port = ntohs(rdma_get_src_port(first_.get()));
    local.cm_address = gid_.address;
  }

  void connect(const proto::Endpoint&, const proto::Endpoint& remote) override {
    const auto deadline = steady_clock::now() + kEventTimeout;
    ids_.resize(static_cast<std::size_t>(settings_.count));
    qps_.assign(ids_.size(), nullptr);
    // Each end keeps as many reads outstanding as its peer can serve.
    initiator_depth_ = std::clamp(std::min(settings_.max_rd_atomic, remote.max_rd_atomic), 1, 255);
    if (side_ == Side::kClient) {
      for (std::size_t i = 0; i < ids_.size(); ++i) call(i, remote, deadline);
    } else {
      answer_all(deadline);
    }
  }

  std::span<ibv_qp* const> qps() const override { return qps_; }

  int inline_bytes() const override { return static_cast<int>(settings_.init.cap.max_inline_data); }

  /// librdmacm takes care of it by itself.
  proto::Ece ece() const override { return settings_.ece == Use::kOff ? proto::Ece() : verbs::query_ece(qps_.front()); }

  void destroy_qps() noexcept override {
    for (const CmId& id : ids_) {
      if (id && id->qp) {
        rdma_disconnect(id.get());
        rdma_destroy_qp(id.get());
      }
    }
    qps_.clear();
    ids_.clear();
  }

 private:
  CmId bind_new_id() {
    rdma_cm_id* raw = nullptr;
    if (rdma_create_id(channel_.get(), &raw, nullptr, RDMA_PS_TCP) != 0) {
      throw call_error("rdma_create_id", errno, device_, rdma_cm_hint());
    }
    CmId id(raw);
    sockaddr_storage from = address_of(gid_.raw, gid_.ipv4, 0);
    if (rdma_bind_addr(id.get(), reinterpret_cast<sockaddr*>(&from)) != 0) {
      throw call_error(fmt::format("rdma_bind_addr({})", gid_.address), errno, device_, rdma_cm_hint());
    }
    return id;
  }

  Event next_event(steady_clock::time_point deadline, const char* awaited) {
    pollfd wait{channel_->fd, POLLIN, 0};
    int ready = 0;
    do {
      const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
      ready = ::poll(&wait, 1, std::max<int>(0, static_cast<int>(left.count())));
    } while (ready < 0 && errno == EINTR);
    if (ready < 0) throw call_error("poll", errno, device_);
    if (ready == 0) {
      throw Error(ExitCode::kPeer, fmt::format("{}: rdma_cm: no {} from the peer in time", device_, awaited),
                  "check that the two addresses reach each other (ping) and that no firewall drops UDP port 4791");
    }
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel_.get(), &event) != 0) throw call_error("rdma_get_cm_event", errno, device_);
    return Event(event);
  }

  void await(rdma_cm_event_type wanted, steady_clock::time_point deadline) {
    const Event event = next_event(deadline, rdma_event_str(wanted));
    if (event->event == wanted) return;
    throw Error(ExitCode::kPeer, fmt::format("{}: rdma_cm: {} instead of {} (status {})", device_,
                                             rdma_event_str(event->event), rdma_event_str(wanted), event->status),
                rdma_cm_hint());
  }

  /// Only before the connection is made do these options take effect.
  void set_options(rdma_cm_id* id) const {
    std::uint8_t tos = static_cast<std::uint8_t>(settings_.path.traffic_class);
    if (tos != 0) set_option(id, RDMA_OPTION_ID_TOS, "RDMA_OPTION_ID_TOS", tos, flag<&TestSpec::traffic_class>());
    std::uint8_t timeout = static_cast<std::uint8_t>(settings_.path.timeout);
    set_option(id, RDMA_OPTION_ID_ACK_TIMEOUT, "RDMA_OPTION_ID_ACK_TIMEOUT", timeout, flag<&TestSpec::qp_timeout>());
  }

  void set_option(rdma_cm_id* id, int option, const char* name, std::uint8_t value, const std::string& asked_by) const {
    if (rdma_set_option(id, RDMA_OPTION_ID, option, &value, sizeof value) == 0) return;
    // Kernels before 5.2 take no time-out: their own stands in for what nobody has asked for.
    if (errno == ENOSYS && option == RDMA_OPTION_ID_ACK_TIMEOUT && value == TestSpec().qp_timeout) return;
    throw call_error(
        fmt::format("rdma_set_option({}, {})", name, value), errno, device_,
        fmt::format("it carries {}; leave {} out to set it without rdma_cm", asked_by, flag<&TestSpec::connector>()));
  }

  void add_qp(std::size_t index, rdma_cm_id* id) {
    const auto create = [&](ibv_qp_init_attr& attr) { return rdma_create_qp(id, pd_, &attr) == 0; };
    if (!verbs::create_qp(settings_.init, settings_.inlining, create))
      verbs::throw_qp_creation(device_, errno, settings_.init);
    // rdma_cm's own INIT grants nothing but local writes.
    ibv_qp_attr rights{};
    rights.qp_access_flags = static_cast<unsigned>(settings_.access);
    if (const int failed = ibv_modify_qp(id->qp, &rights, IBV_QP_ACCESS_FLAGS); failed != 0) {
      throw call_error("ibv_modify_qp(access flags)", failed > 0 ? failed : errno, device_);
    }
    qps_[index] = id->qp;
  }

  rdma_conn_param parameters() const {
    rdma_conn_param parameters{};
    parameters.responder_resources = static_cast<std::uint8_t>(settings_.max_dest_rd_atomic);
    parameters.initiator_depth = static_cast<std::uint8_t>(initiator_depth_);
    parameters.retry_count = static_cast<std::uint8_t>(settings_.path.retry_count);
    parameters.rnr_retry_count = static_cast<std::uint8_t>(settings_.path.rnr_retry);
    return parameters;
  }

  void call(std::size_t index, const proto::Endpoint& remote, steady_clock::time_point deadline) {
    // `first_` stays unused here: it holds the context open past the QPs.
    ids_[index] = bind_new_id();
    rdma_cm_id* id = ids_[index].get();
    const ibv_gid gid = gid_from_hex(remote.gid_raw);
    sockaddr_storage to = address_of(gid, is_ipv4_mapped(gid), remote.cm_port);
    set_options(id);
    if (rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), static_cast<int>(kResolveTimeout.count())) !=
        0) {
      throw call_error(fmt::format("rdma_resolve_addr({})", remote.cm_address), errno, device_, rdma_cm_hint());
    }
    await(RDMA_CM_EVENT_ADDR_RESOLVED, deadline);
    if (rdma_resolve_route(id, static_cast<int>(kResolveTimeout.count())) != 0) {
      throw call_error("rdma_resolve_route", errno, device_, rdma_cm_hint());
    }
    await(RDMA_CM_EVENT_ROUTE_RESOLVED, deadline);
    add_qp(index, id);
    PrivateData data{htonl(kMagic), htonl(static_cast<std::uint32_t>(index))};
    rdma_conn_param request = parameters();
    request.private_data = &data;
    request.private_data_len = sizeof data;
    if (rdma_connect(id, &request) != 0) throw call_error("rdma_connect", errno, device_, rdma_cm_hint());
    await(RDMA_CM_EVENT_ESTABLISHED, deadline);
  }

  void answer_all(steady_clock::time_point deadline) {
    std::size_t established = 0;
    while (established < ids_.size()) {
      const Event event = next_event(deadline, "connect request");
      if (event->event == RDMA_CM_EVENT_ESTABLISHED) {
        ++established;
      } else if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
        answer(*event);
      } else {
        throw Error(ExitCode::kPeer, fmt::format("{}: rdma_cm: {} while connecting (status {})", device_,
                                                 rdma_event_str(event->event), event->status));
      }
    }
  }

  void answer(const rdma_cm_event& event) {
    CmId id(event.id);
    PrivateData data{};
    if (event.param.conn.private_data_len >= sizeof data) {
      std::memcpy(&data, event.param.conn.private_data, sizeof data);
    }
    const std::size_t index = ntohl(data.index);
    if (ntohl(data.magic) != kMagic || index >= ids_.size() || ids_[index]) {
      rdma_reject(id.get(), nullptr, 0);
      // The id may go only after its event has been acknowledged.
      dropped_.push_back(std::move(id));
      return;
    }
    ids_[index] = std::move(id);
    set_options(ids_[index].get());
    add_qp(index, ids_[index].get());
    rdma_conn_param reply = parameters();
    if (rdma_accept(ids_[index].get(), &reply) != 0) throw call_error("rdma_accept", errno, device_, rdma_cm_hint());
  }

  Side side_;
  std::string device_;
  verbs::Gid gid_;
  EventChannel channel_;
  CmId first_;  // the listener, or what holds the client's context open
  std::vector<CmId> dropped_;
  std::vector<CmId> ids_;
  std::vector<ibv_qp*> qps_;
  ibv_pd* pd_ = nullptr;
  QpSettings settings_;
  int initiator_depth_ = 1;
};

}  // namespace

std::unique_ptr<Connector> make_rdma_cm_connector(Side side, const verbs::Context& device,
                                                  const verbs::Gid& gid) {
  return std::make_unique<RdmaCmConnector>(side, device, gid);
}

}  // namespace gdrperf::conn
