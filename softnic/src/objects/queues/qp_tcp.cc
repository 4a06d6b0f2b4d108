#include <cstring>
#include <utility>

#include "objects/queues/qp.h"
#include "remote/address.h"
#include "remote/reach.h"

/// Peers on other hosts, over TCP.
namespace gdrperf::softnic {
namespace {

/// Time that the peer's process may take to answer at RTR.
constexpr int kReachMs = 2000;

bool same(const ibv_gid& one, const ibv_gid& other) { return std::memcmp(&one, &other, sizeof one) == 0; }

bool is_gid_of_this_process(const ibv_gid& gid) {
  for (const auto& device : devices()) {
    for (std::uint32_t entry = 0; entry < kGidsPerPort; ++entry) {
      if (same(device->gid(entry), gid)) return true;
    }
  }
  return false;
}

/// One end of a pair connects, the other one waits for it: both know which.
bool connects_itself(const TcpRoute& expected) {
  const int order = std::memcmp(&expected.to, &expected.from, sizeof expected.to);
  return order != 0 ? order < 0 : expected.to_qpn < expected.from_qpn;
}

UniqueFd reach(const TcpRoute& expected, const Device& device) {
  const TcpRoute route{expected.to, expected.from, expected.to_qpn, expected.from_qpn, expected.type};
  TcpReached reached = reach_over_tcp(route, device.config, {kReachMs, kReachMs});
  if (!reached.socket) say_not_reached(route, reached);
  return std::move(reached.socket);
}

}  // namespace

bool Qp::is_remote(const ibv_qp_attr& attr) const {
  const DeviceConfig& config = owner.device.config;
  if (config.tcp_port == 0 || attr.ah_attr.is_global == 0 || attr.ah_attr.grh.sgid_index >= kGidsPerPort) return false;
  const ibv_gid& to = attr.ah_attr.grh.dgid;
  const ibv_gid own = owner.device.gid(attr.ah_attr.grh.sgid_index);
  if (config.shared == SharedPolicy::kNever) return (attr.dest_qp_num & 0xffffff) != number() || !same(to, own);
  return !is_gid_of_this_process(to) && !is_of_this_host(to, config.netdev);
}

/// As find_peer: under no lock.
std::shared_ptr<TcpStream> Qp::reach_remote(const ibv_qp_attr& attr) {
  TcpRoute expected;
  expected.from = attr.ah_attr.grh.dgid;
  expected.to = owner.device.gid(attr.ah_attr.grh.sgid_index);
  expected.from_qpn = attr.dest_qp_num & 0xffffff;
  expected.to_qpn = number();
  expected.type = static_cast<std::uint8_t>(init_.qp_type);
  const Initiator own{process, *shared, attr_, number(), pd};
  auto stream = std::make_shared<TcpStream>(own, expected, transport_->opcodes(), !transport_->acknowledged(), *this,
                                            process.hub());
  if (connects_itself(expected)) {
    UniqueFd socket = reach(expected, owner.device);
    if (socket) stream->take(socket);
  }
  return stream;
}

void Qp::start_stream(std::shared_ptr<TcpStream> stream) {
  connected_->connect_over(stream);
  stream_ = std::move(stream);
  send_queue.lock.share();
  if (send_queue.mode() != SendQueue::Mode::kPlain) return;
  send_queue.set_mode(SendQueue::Mode::kRemote);
  tcp_flight_ = std::make_unique<TcpFlight>(*this, send_queue, patience_, attr_, *stream_, transport_->acknowledged());
}

/// Polls of its CQs move it on, and else the hub's thread does.
void Qp::join_queues(const std::shared_ptr<TcpStream>& stream) {
  process.hub().add(stream);
  send_cq_->add_waiting(this);
  recv_cq_->add_waiting(this);
}

void Qp::stop_stream() {
  const std::shared_ptr<TcpStream> stopped = stream();
  if (stopped == nullptr) return;
  stopped->stop();
  send_cq_->remove_waiting(this);
  recv_cq_->remove_waiting(this);
  send_queue.lock.lock();
  if (send_queue.mode() == SendQueue::Mode::kRemote) send_queue.set_mode(SendQueue::Mode::kPlain);
  send_queue.drop_all();
  tcp_flight_.reset();
  stream_.reset();
  send_queue.lock.unlock();
}

std::shared_ptr<TcpStream> Qp::stream() {
  send_queue.lock.lock();
  std::shared_ptr<TcpStream> copy = stream_;
  send_queue.lock.unlock();
  return copy;
}

void Qp::submit_remote(SendOp& op) noexcept {
  const ibv_qp_state now = state();
  if (now != IBV_QPS_RTS && now != IBV_QPS_SQD) flush_waiting();
  op.sq_count = send_queue.count_one();
  if (now != IBV_QPS_RTS && now != IBV_QPS_SQD) {
    complete(op, IBV_WC_WR_FLUSH_ERR, 0);
    return;
  }
  tcp_flight_->submit(op);
  process.control().want_ticks();
}

Progress Qp::progress_remote(TcpStream& stream) noexcept {
  stream.poll();
  if (!lock_for_poll()) return Progress::kListed;
  if (tcp_flight_ != nullptr) tcp_flight_->move();
  if (flight_ != nullptr) flight_->poll();
  send_queue.lock.unlock();
  return Progress::kListed;
}

bool Qp::move_on() noexcept {
  for (int tries = 0; !send_queue.lock.try_lock(); ++tries) {
    if (tries == 200) return false;
    cpu_relax();
  }
  if (tcp_flight_ != nullptr) tcp_flight_->move();
  send_queue.lock.unlock();
  return true;
}

}  // namespace gdrperf::softnic
