#include "engine/setup/local_end.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include <fmt/format.h>

#include "gdrperf/base/cpu.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/host.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/flow.h"
#include "gdrperf/proto/multicast.h"
#include "gdrperf/proto/operation.h"
#include "gdrperf/verbs/driver_qp.h"
#include "gdrperf/verbs/ece.h"
#include "gdrperf/verbs/host_side.h"
#include "gdrperf/verbs/mlx5.h"
#include "engine/setup/demand.h"
#include "engine/setup/limiter.h"
#include "engine/setup/op_traits.h"

namespace gdrperf::engine {
namespace {

void check_message_size(const OpenDevice& device, const ResolvedSpec& spec) {
  const bool srd = spec.transport == Transport::kSrd && spec.op().has_remote_address;
  std::uint64_t limit = 0;
  if (srd) {
    limit = verbs::most_srd_bytes(device.context.get(), spec.op().opcode);
  } else {
    ibv_port_attr attr{};
    if (ibv_query_port(device.context.get(), static_cast<std::uint8_t>(device.port.number), &attr) != 0) return;
    limit = attr.max_msg_sz == 0 ? 1u << 30 : attr.max_msg_sz;
  }
  if (spec.size_bytes <= limit) return;
  const std::string what =
      limit == 0 ? fmt::format("has no {} over SRD (device_caps of efadv_query_device)",
                               facts_of(spec.test.operation).request)
                 : fmt::format("takes {} up to {}", srd ? "RDMA requests over SRD" : "messages", format_size(limit));
  throw usage_error(fmt::format("{} {}: {} {}", flag<&TestSpec::size_bytes>(), format_size(spec.size_bytes),
                                device.context.name(), what),
                    srd ? "send_bw and send_lat are on every EFA" : "");
}

/// "" for RC, which is all that older peers know.
std::string transport_name(Transport transport) {
  return transport == Transport::kRc ? std::string() : std::string(to_string(transport));
}

}  // namespace

LocalEnd::LocalEnd(EndInput input)
    : side_(input.side),
      opener_(input.opener),
      spec_(input.spec),
      steps_(std::move(input.steps)),
      device_(std::move(input.device)),
      accepted_(std::move(input.accepted)),
      affinity_(spec_, verbs::numa_node(device_.context), side_, input.others_cpus) {
  const std::optional<verbs::DriverKind> driver = driver_kind(spec_.transport);
  if (driver) verbs::require_driver_qps(device_.context.get(), *driver);
  check_message_size(device_, spec_);
  connector_ = spec_.connector == Connector::kRdmaCm
                   ? conn::make_rdma_cm_connector(side_, device_.context, input.gid.gid)
                   : conn::make_exchange_connector(side_, device_.context);
  pd_ = verbs::make_pd(connector_->context());
  if (spec_.thread_domain) {
    thread_domain_ = verbs::make_thread_domain(connector_->context());
    parent_domain_ = verbs::make_parent_domain(pd_.get(), thread_domain_.get());
  }
  // Whole pages for each area: what a device maps or moves is pages, and the rest of a page is nobody
  // else's. Processors fetch cache lines in pairs: with what the peer writes beside what this end
  // writes, each message would take this end's line away as well.
  const std::uint64_t area = area_bytes(spec_);
  steps_.memory("allocating");
  buffer_ = mem::make_buffer(spec_.end(side_).buffer, area * (initiates() && is_target() ? 2 : 1), spec_.registration);
  // Small messages that mlx5 hands over within their completion never reach GPU memory.
  if (!buffer_->cpu_reachable() || spec_.posts_to_rings(side_)) ::setenv("MLX5_SCATTER_TO_CQE", "0", 1);
  if (initiates()) initiator_area_ = buffer_->data();
  if (is_target()) target_area_ = buffer_->data() + (initiates() ? area : 0);
  fill_endpoint(input.gid, input.mtu_bytes);
}

void LocalEnd::register_memory(int access, std::unique_ptr<mem::Buffer> staging) {
  staging_ = std::move(staging);
  steps_.memory("registering");
  mem::Buffer& registered = staging_ ? *staging_ : *buffer_;
  // Kernels and devices without it ignore it: it is of IBV_ACCESS_OPTIONAL_RANGE.
  if (spec_.relaxes_ordering()) access |= IBV_ACCESS_RELAXED_ORDERING;
  if (spec_.odp) {
    check_odp();
    access |= IBV_ACCESS_ON_DEMAND;
  }
  hints_ = verbs::make_dma_handle(pd_->context, spec_.tph);
  if (hints_ && !registered.cpu_reachable())
    throw usage_error(flag<&TestSpec::tph>() + ": is for host memory", "leave it out");
  const auto make = [&] {
    return hints_ ? verbs::register_hinted(pd_.get(), registered.data(), registered.size(), access, hints_.get())
                  : registered.register_with(pd_.get(), access);
  };
  mr_ = make();
  for (int q = 1; spec_.mr_per_qp && q < spec_.qps; ++q)
    more_mrs_.push_back(make());
  if (spec_.null_mr && side_ == conn::Side::kClient) null_mr_ = verbs::make_null_mr(pd_.get());
  endpoint_.registration = registered.registration();
  endpoint_.relaxed_ordering = ordering();
}

std::string LocalEnd::ordering() const {
  if (device_.context.kind() != verbs::DeviceKind::kHardware) return {};
  if (!spec_.relaxes_ordering()) return "off";
  std::string none;
  const bool direct = endpoint_.registration ==
                      to_text(setting<&TestSpec::registration>(), static_cast<std::int64_t>(Registration::kDataDirect));
  const std::string function =
      direct ? verbs::data_direct_function(device_.context.get(), none) : verbs::pci_address(device_.context);
  switch (verbs::relaxed_ordering_seen(function)) {
    case verbs::OrderingSeen::kAsked: return "asked";
    case verbs::OrderingSeen::kEnabled: return "enabled";
    case verbs::OrderingSeen::kDisabled: break;
  }
  if (spec_.ordering == Ordering::kRelaxed) {
    throw Error(
        ExitCode::kEnvironment,
        fmt::format("{} on: relaxed ordering is disabled in PCIe Device Control of {} ({})",
                    flag<&TestSpec::ordering>(), function, device()),
        fmt::format("sudo setpci -s {} CAP_EXP+8.w=0010:0010, or leave {} out", function, flag<&TestSpec::ordering>()));
  }
  return "disabled";
}

void LocalEnd::check_atomics() const {
  if (device_.context.attr().orig_attr.atomic_cap != IBV_ATOMIC_NONE) return;
  throw Error(ExitCode::kEnvironment, fmt::format("{} has no atomics (its atomic_cap is IBV_ATOMIC_NONE)", device()),
              fmt::format("{} needs a device with atomics on both hosts", to_string(spec_.test)));
}

std::vector<std::uint32_t> LocalEnd::lkeys() const {
  if (null_mr_) return {null_mr_->lkey};
  std::vector<std::uint32_t> keys = {mr_->lkey};
  for (const verbs::Mr& each : more_mrs_) keys.push_back(each->lkey);
  return keys;
}

void LocalEnd::check_odp() const {
  const bool can = (device_.context.attr().odp_caps.general_caps & IBV_ODP_SUPPORT) != 0;
  const char* const why = !buffer_->cpu_reachable() || staging_ ? "GPU memory is never paged"
                          : can                                 ? nullptr
                                : "it has no on-demand paging (odp_caps of ibv_devinfo -v)";
  if (why != nullptr)
    throw Error(ExitCode::kEnvironment, fmt::format("{}: {}: {}", flag<&TestSpec::odp>(), device(), why),
                fmt::format("leave {} out", flag<&TestSpec::odp>()));
}

void LocalEnd::offer(const std::byte* at, std::uint64_t bytes) {
  endpoint_.address = reinterpret_cast<std::uintptr_t>(at);
  endpoint_.length = bytes;
  endpoint_.rkey = mr_->rkey;
  if (more_mrs_.empty()) return;
  endpoint_.rkeys = {mr_->rkey};
  for (const verbs::Mr& each : more_mrs_) endpoint_.rkeys.push_back(each->rkey);
}

std::optional<std::uint64_t> LocalEnd::offset_of(const std::byte* area) const {
  if (area == nullptr) return std::nullopt;
  return static_cast<std::uint64_t>(area - buffer_->data());
}

bool LocalEnd::pulls() const { return !facts_of(spec_.test.operation).carries_data; }

std::optional<std::uint64_t> LocalEnd::source_offset() const {
  return offset_of(pulls() ? target_area_ : initiator_area_);
}

std::optional<std::uint64_t> LocalEnd::sink_offset() const {
  std::optional<std::uint64_t> offset = offset_of(pulls() ? initiator_area_ : target_area_);
  if (offset) *offset += spec_.layout().header;
  return offset;
}

void LocalEnd::make_queues(const QueueRights& rights) {
  rights_ = rights;
  ibv_context* context = connector_->context();
  if (spec_.wait == Wait::kEvent) completion_channel_ = verbs::make_completion_channel(context);
  const Demand demand = demand_of(spec_, side_);
  send_cq_ =
      verbs::make_cq(context, demand.send_entries, completion_channel_.get(), spec_.comp_vector, parent_domain_.get());
  recv_cq_ =
      verbs::make_cq(context, demand.recv_entries, completion_channel_.get(), spec_.comp_vector, parent_domain_.get());
  endpoint_.interrupt_cpus = verbs::interrupt_cpus(verbs::pci_address(device_.context), spec_.comp_vector);
  if (completion_channel_) {
    ibv_req_notify_cq(send_cq_.get(), 0);
    ibv_req_notify_cq(recv_cq_.get(), 0);
  }
  verbs::QpCapacity capacity;
  capacity.send_wr = demand.send_wr;
  if (spec_.transport == Transport::kXrc) xrc_domain_ = verbs::make_xrc_domain(context);
  make_srqs(demand);
  capacity.recv_wr = srqs_.empty() ? demand.recv_wr : 0;
  capacity.sges = spec_.sges;
  capacity.inline_bytes = rights.inline_bytes;
  conn::QpSettings settings;
  settings.count = spec_.qps;
  settings.access = rights.access;
  settings.inlining = rights.inlining;
  settings.path.service_level = spec_.service_level;
  settings.path.traffic_class = spec_.traffic_class;
  settings.path.hop_limit = spec_.hop_limit;
  settings.flow_labels = flow_labels_of(spec_);
  if (!settings.flow_labels.empty()) settings.path.flow_label = settings.flow_labels.front();
  settings.path.timeout = spec_.qp_timeout;
  settings.path.retry_count = spec_.retry_count;
  settings.path.rnr_retry = spec_.rnr_retry;
  settings.path.min_rnr_timer = spec_.rnr_timer;
  settings.pkey_index = spec_.pkey_index;
  settings.lag_ports = lag_ports_of(spec_);
  settings.ece = spec_.transport == Transport::kUd || by_driver(spec_.transport) ? Use::kOff : spec_.ece;
  settings.ooo = endpoint_.ooo = places_out_of_order();
  settings.max_rd_atomic = std::clamp(device_.context.attr().orig_attr.max_qp_init_rd_atom, 1, 255);
  if (spec_.max_rd_atomic > 0) settings.max_rd_atomic = std::min(settings.max_rd_atomic, spec_.max_rd_atomic);
  settings.max_dest_rd_atomic = endpoint_.max_rd_atomic;
  settings.init = verbs::qp_attr(qp_type(spec_.transport), send_cq_.get(), recv_cq_.get(), capacity);
  settings.driver = driver_kind(spec_.transport);
  const OpTraits& op = spec_.op();
  settings.send_ops = verbs::send_ops_of(op.opcode) | (op.flag ? verbs::send_ops_of(op.flag_opcode) : 0);
  settings.target_srqs = srqs();
  const bool own_queue = xrc_domain_ || settings.driver == verbs::DriverKind::kDc;
  if (!own_queue && !srqs_.empty()) settings.init.srq = srqs_.front().get();
  if (spec_.posts_to_rings(side_)) make_own_cqs(demand.send_wr + 1);
  settings.send_cqs = own_cqs_;
  settings.xrc_domain = xrc_domain_.get();
  fill_groups(settings);
  steps_.queues("creating");
  connector_->prepare(parent_domain_ ? parent_domain_.get() : pd_.get(), settings, endpoint_);
  for (std::size_t q = 0; xrc_domain_ && q < endpoint_.xrc.size() && !srqs_.empty(); ++q) {
    endpoint_.xrc[q].srq = verbs::srq_number(srqs_[q % srqs_.size()].get());
  }
}

/// Threads that post to one QP poll for it alone.
void LocalEnd::make_own_cqs(int entries) {
  for (int q = 0; q < spec_.qps; ++q) {
    more_cqs_.push_back(
        verbs::make_cq(connector_->context(), entries, nullptr, spec_.comp_vector, parent_domain_.get()));
    own_cqs_.push_back(more_cqs_.back().get());
  }
}

void LocalEnd::make_srqs(const Demand& demand) {
  if (demand.srq_wr == 0) return;
  const auto receives = static_cast<std::uint32_t>(demand.srq_wr);
  for (int i = 0; i < demand.srqs; ++i) {
    srqs_.push_back(xrc_domain_
                        ? verbs::make_xrc_srq(pd_.get(), xrc_domain_.get(), recv_cq_.get(), receives, spec_.sges)
                        : verbs::make_srq(pd_.get(), receives, spec_.sges));
  }
}

std::vector<ibv_srq*> LocalEnd::srqs() const {
  std::vector<ibv_srq*> queues;
  for (const verbs::Srq& each : srqs_) queues.push_back(each.get());
  return queues;
}

void LocalEnd::fill_groups(conn::QpSettings& settings) const {
  if (spec_.multicast.empty()) return;
  if (device_.port.link_layer == IBV_LINK_LAYER_INFINIBAND) {
    throw Error(ExitCode::kEnvironment,
                fmt::format("{}: {} is an InfiniBand port, whose groups are joined at the subnet manager, which is not "
                            "supported",
                            flag<&TestSpec::multicast>(), device()),
                "RoCE ports have multicast");
  }
  const bool ipv4 = endpoint_.gid.find(':') == std::string::npos;
  const auto as_gid = [](const GroupAddress& address) {
    ibv_gid gid{};
    std::copy(address.begin(), address.end(), gid.raw);
    return gid;
  };
  const ibv_gid to_server = as_gid(group_to_server(spec_, ipv4));
  const ibv_gid to_client = as_gid(group_to_client(spec_, ipv4));
  const bool server = side_ == conn::Side::kServer;
  if (is_target()) settings.own_group = server ? to_server : to_client;
  if (initiates()) settings.peers_group = server ? to_client : to_server;
}

bool LocalEnd::places_out_of_order() {
  if (spec_.ooo == Use::kOff) return false;
  const std::string asked = flag<&TestSpec::ooo>();
  std::string why = keeps_order(spec_, side_, connector_->context());
  if (why.empty() && accepted_ && !accepted_->ooo)
    why = fmt::format("the peer's {} cannot, or its gdrperf", accepted_->device);
  if (why.empty()) return true;
  if (spec_.ooo == Use::kOn)
    throw Error(ExitCode::kEnvironment, fmt::format("{} on: {}", asked, why),
                fmt::format("leave it out, or give {} auto: packets are placed in order", asked));
  notes_.push_back(fmt::format("{} auto: packets are placed in order: {}", asked, why));
  return false;
}

void LocalEnd::fill_endpoint(const verbs::GidChoice& gid, int mtu_bytes) {
  endpoint_.device = device_.context.name();
  endpoint_.kind = verbs::to_string(device_.context.kind());
  endpoint_.firmware = device_.context.firmware();
  endpoint_.driver = device_.context.driver();
  endpoint_.port = device_.port.number;
  endpoint_.lid = device_.port.lid;
  endpoint_.mtu_bytes = mtu_bytes;
  endpoint_.gid_index = gid.gid.index;
  endpoint_.gid = gid.gid.address;
  endpoint_.gid_raw = conn::gid_to_hex(gid.gid.raw);
  endpoint_.gid_family = verbs::family_name(gid.gid);
  endpoint_.gid_why = gid.why;
  endpoint_.buffer = buffer_->kind();
  if (spec_.verify_seed) endpoint_.checker = buffer_->checker();
  if (buffer_->gpu() != nullptr) endpoint_.gpu = *buffer_->gpu();
  endpoint_.transport = transport_name(spec_.transport);
  endpoint_.host_id = host_identity();
  endpoint_.cpu = current_cpu();
  endpoint_.numa = numa_node_of_cpu(endpoint_.cpu);
  endpoint_.max_rd_atomic = std::clamp(device_.context.attr().orig_attr.max_qp_rd_atom, 1, 255);
  if (spec_.limiter == Limiter::kHardware) endpoint_.rate_limit_kbps = limit_of_qp(spec_, mtu_bytes).kbps;
}

void LocalEnd::check_offered(std::uint64_t bytes) const {
  if (remote_.length >= bytes) return;
  throw peer_error(
      fmt::format("the peer's region has {}, this host needs {}", format_size(remote_.length), format_size(bytes)));
}

void LocalEnd::connect(const proto::Endpoint& remote) {
  if (remote.transport != transport_name(spec_.transport)) {
    throw peer_error(fmt::format("the peer's QPs are {}, this host's {}: its gdrperf has no {}",
                                 remote.transport.empty() ? "RC" : remote.transport, to_string(spec_.transport),
                                 flag<&TestSpec::transport>()),
                     "install the same version on both hosts");
  }
  steps_.queues("connecting");
  connector_->connect(endpoint_, remote);
  if (spec_.limiter == Limiter::kHardware) {
    const verbs::RateLimit limit = limit_of_qp(spec_, endpoint_.mtu_bytes);
    for (ibv_qp* qp : connector_->qps()) verbs::limit_rate(qp, limit, device());
  }
  remote_ = remote;
  inline_bytes_ = std::min(rights_.inline_bytes, connector_->inline_bytes());
  note_ece(remote);
  connected();
}

void LocalEnd::note_ece(const proto::Endpoint& remote) {
  const bool offered = static_cast<bool>(endpoint_.ece);
  endpoint_.ece = connector_->ece();
  if (spec_.ece == Use::kOff || endpoint_.ece) return;
  const std::string asked = flag<&TestSpec::ece>();
  const std::string other = remote.device.empty() ? "the peer" : "the peer's " + remote.device;
  if (spec_.ece == Use::kOn) throw verbs::no_ece(offered ? other : device());
  const std::string why = !offered      ? fmt::format("{} has none for these QPs", device())
                          : !remote.ece ? fmt::format("{} has none", other)
                                        : fmt::format("{} and {} have none in common", device(), other);
  notes_.push_back(fmt::format("{} auto: connected without enhanced connection establishment: {}", asked, why));
}

}  // namespace gdrperf::engine
