#include "flight/tcp_flight.h"

#include <algorithm>

#include "flight/moments.h"
#include "shared/segment/completion.h"

namespace gdrperf::softnic {
namespace {

/// A peer that says nothing, or has yet to connect, is waited for at least so long.
constexpr std::uint64_t kSilentNs = 4'000'000'000;

std::uint32_t bytes_of(const SendOp& op) noexcept {
  std::uint32_t bytes = 0;
  for (unsigned i = 0; i < op.num_sge; ++i) bytes += op.sges[i].length;
  return bytes;
}

}  // namespace

const SendOp* TcpFlight::next(std::uint32_t ahead) noexcept {
  queue_.lock.is_held();
  while (spoiled_ == 0 && qp_.state() == IBV_QPS_RTS) {
    const std::uint32_t count = sent_ + 1 + ahead;
    if (before(queue_.posted(), count)) return nullptr;
    const SendOp& op = queue_.slot(count).op;
    const bool read = is_read_like(op.opcode);
    const std::uint32_t most = std::max<std::uint32_t>(attributes_.max_rd_atomic, 1);
    if (is_local(op.opcode)) {
      // In its turn: all before it was sent.
      if (ahead > 0) return nullptr;
      const Outcome outcome = qp_.execute(op);
      if (outcome.kind == Outcome::Kind::kFailed) {
        spoiled(outcome.status);
        return nullptr;
      }
      ++sent_;
      continue;
    }
    // A frame that was begun was remembered as a READ.
    const std::uint32_t under_way = stream_.reads_under_way();
    const bool begun = read && stream_.last_read() == count;
    if (!begun && read && (under_way >= most || ahead > 0)) return nullptr;
    if (!begun && (op.flags & IBV_SEND_FENCE) != 0 && (under_way > 0 || ahead > 0)) return nullptr;
    const std::uint32_t bytes = bytes_of(op);
    const ibv_wc_status fault = bytes > kMaxMessageBytes                                         ? IBV_WC_LOC_LEN_ERR
                                : read && op.opcode != IBV_WR_RDMA_READ && bytes != 8            ? IBV_WC_LOC_LEN_ERR
                                : read && attributes_.max_rd_atomic == 0                         ? IBV_WC_LOC_QP_OP_ERR
                                                                                                 : IBV_WC_SUCCESS;
    if (fault == IBV_WC_SUCCESS) return &op;
    if (ahead == 0) spoiled(fault);
    return nullptr;
  }
  return nullptr;
}

void TcpFlight::spoiled(ibv_wc_status status) noexcept {
  spoiled_ = sent_ + 1;
  spoiled_status_ = status;
}

void TcpFlight::move() noexcept {
  queue_.lock.is_held();
  complete_answered();
  if (qp_.state() == IBV_QPS_RTS && queue_.waiting() > 0) {
    if (stream_.open() && sent_ != queue_.posted()) {
      stream_.pump(*this);
      complete_answered();
    }
    if (!acknowledged_ && stream_.lost()) sent_ = queue_.posted();
    if (queue_.waiting() > 0 && qp_.state() == IBV_QPS_RTS) be_patient();
  }
}

void TcpFlight::complete_oldest(ibv_wc_status status) noexcept {
  const SendOp& op = queue_.oldest();
  patience_.forget();
  queue_.drop_oldest();
  if (status == IBV_WC_SUCCESS) {
    qp_.complete(op, status, bytes_of(op));
  } else {
    qp_.fail(op, status);
  }
}

void TcpFlight::complete_answered() noexcept {
  // Before what was answered is looked at: that was stored first.
  const bool lost = stream_.lost();
  while (queue_.waiting() > 0 && qp_.state() == IBV_QPS_RTS) {
    const std::uint32_t oldest = queue_.done() + 1;
    if (spoiled_ == oldest) {
      complete_oldest(spoiled_status_);
      return;
    }
    const bool was_sent = !before(sent_, oldest);
    const bool answered = !acknowledged_ || is_local(queue_.oldest().opcode) || !before(stream_.answered(), oldest);
    if (!was_sent || !answered) break;
    complete_oldest(IBV_WC_SUCCESS);
  }
  if (queue_.waiting() == 0 || qp_.state() != IBV_QPS_RTS) return;
  if (stream_.failure() != IBV_WC_SUCCESS) {
    complete_oldest(stream_.failure());
  } else if (lost && acknowledged_ && !stream_.left()) {
    complete_oldest(IBV_WC_RETRY_EXC_ERR);
  }
}

/// The oldest request is not answered yet.
void TcpFlight::be_patient() noexcept {
  const Outcome::Kind reason = stream_.waits();
  if (reason == Outcome::Kind::kDone) {
    if (!is_silent()) return;
    if (acknowledged_) {
      complete_oldest(IBV_WC_RETRY_EXC_ERR);
    } else {
      sent_ = queue_.posted();
    }
    return;
  }
  silent_since_ns_ = 0;
  if (!patience_.none_for(reason) && !patience_.ends(reason, stream_.rnr_timer())) return;
  // It lies at the other end, and must not be executed now.
  stream_.cut();
  complete_oldest(Patience::status_of(reason));
}

bool TcpFlight::is_silent() noexcept {
  patience_.forget();
  const std::uint64_t moved = stream_.moved();
  const std::uint64_t now = monotonic_ns();
  if (moved != seen_moved_ || silent_since_ns_ == 0) {
    seen_moved_ = moved;
    silent_since_ns_ = now;
    return false;
  }
  const std::uint64_t limit = (4096ull << attributes_.timeout) * (attributes_.retry_cnt + 1u);
  return attributes_.timeout != 0 && now - silent_since_ns_ > std::max(limit, kSilentNs);
}

}  // namespace gdrperf::softnic
