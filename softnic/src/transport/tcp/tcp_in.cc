#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "gpu/message.h"
#include "paths/ways.h"
#include "transport/tcp/tcp_stream.h"

/// Receiving half of a stream: frames, and data straight into the memory that it is for.
namespace gdrperf::softnic {
namespace {

constexpr std::size_t kInBytes = 64u << 10;
/// Messages up to this size are received into the buffer, and copied once more.
constexpr std::uint64_t kWholeBytes = 16u << 10;
/// The end of a larger one as well: its last byte is to be seen last.
constexpr std::uint64_t kTailBytes = 64;
/// Reads in a row, before others get their turn.
constexpr int kMostReads = 64;
/// In the middle of a large message this end wakes for so many bytes.
constexpr std::uint64_t kMuchBytes = 256u << 10;

constexpr bool earlier(std::uint32_t one, std::uint32_t other) { return static_cast<std::int32_t>(one - other) < 0; }

}  // namespace

bool TcpStream::violated() noexcept {
  lose();
  return false;
}

/// True when anything came.
bool TcpStream::drive() noexcept {
  parked_ = false;
  if (in_ == nullptr) in_.reset(new (std::nothrow) std::uint8_t[kInBytes]);
  if (in_ == nullptr) return false;
  const bool any = read_all();
  // The data that the socket was to wait for may be here; the hub would sleep through what is smaller.
  if (low_water_ > 1 && open()) wait_for_much();
  return any;
}

bool TcpStream::read_all() noexcept {
  bool any = false;
  for (int reads = 0; reads < kMostReads && open(); ++reads) {
    if (!parse()) return any;
    const bool direct = step_ == Step::kStream && available() == 0 && frame_.bytes - done_ > 2 * kTailBytes;
    drained_ = false;
    if (!(direct && read_direct()) && !read_buffered()) return any;
    any = true;
    moved_.fetch_add(1, std::memory_order_relaxed);
    if (drained_) break;
  }
  if (open()) parse();
  return any;
}

/// Whoever is woken for each segment of a large message spends more on waking than on copying.
void TcpStream::wait_for_much() noexcept {
  std::uint32_t bytes = 1;
  if (step_ == Step::kStream && available() == 0) {
    bytes = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(frame_.bytes - done_, 1, kMuchBytes));
  }
  if (bytes == low_water_) return;
  const int wanted = static_cast<int>(bytes);
  if (::setsockopt(socket(), SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof wanted) == 0) low_water_ = bytes;
}

bool TcpStream::got(std::int64_t count) noexcept {
  if (count > 0) return true;
  if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) lose();
  return false;
}

bool TcpStream::read_buffered() noexcept {
  if (in_begin_ > 0) {
    std::memmove(in_.get(), in_.get() + in_begin_, available());
    in_end_ = available();
    in_begin_ = 0;
  }
  const ssize_t count = ::recv(socket(), in_.get() + in_end_, kInBytes - in_end_, MSG_DONTWAIT);
  if (!got(count)) return false;
  // Less than there was room for: no more is there, and asking again would take a system call.
  drained_ = static_cast<std::size_t>(count) < kInBytes - in_end_;
  in_end_ += static_cast<std::size_t>(count);
  return true;
}

/// False: by way of the buffer, which finds out why.
bool TcpStream::read_direct() noexcept {
  if (!enter()) return false;
  Pieces pieces;
  ssize_t count = -1;
  if (place(frame_.bytes - done_ - kTailBytes, pieces)) {
    iovec vectors[kMaxSge + 2];
    unsigned used = 0;
    for (unsigned i = 0; i < pieces.count; ++i) vectors[used++] = {pieces.items[i].address, pieces.items[i].length};
    // Data behind the next header may be for other memory: not here.
    vectors[used++] = {in_.get(), kTailBytes + sizeof frame_};
    msghdr message{};
    message.msg_iov = vectors;
    message.msg_iovlen = used;
    count = ::recvmsg(socket(), &message, MSG_DONTWAIT);
  }
  leave();
  if (count <= 0) return false;
  drained_ = static_cast<std::uint64_t>(count) < pieces.total + kTailBytes + sizeof frame_;
  const std::uint64_t placed = std::min<std::uint64_t>(static_cast<std::uint64_t>(count), pieces.total);
  done_ += placed;
  in_begin_ = 0;
  in_end_ = static_cast<std::size_t>(count) - placed;
  return true;
}

bool TcpStream::parse() noexcept {
  while (true) {
    switch (step_) {
      case Step::kHeader:
        if (available() < sizeof frame_) return true;
        std::memcpy(&frame_, in_.get() + in_begin_, sizeof frame_);
        in_begin_ += sizeof frame_;
        done_ = 0;
        told_waiting_ = false;
        if (!accept_frame()) return false;
        break;
      case Step::kWhole:
        if (available() < frame_.bytes) return true;
        if (!finish(in_.get() + in_begin_)) return false;
        in_begin_ += frame_.bytes;
        step_ = Step::kHeader;
        break;
      case Step::kBegin:
        if (!begin_stream()) return false;
        break;
      case Step::kStream:
        if (available() == 0 && done_ < frame_.bytes) return true;
        if (!take_stream()) return false;
        break;
      case Step::kFinish:
        if (!finish(into_ == Into::kBuffer ? buffer_.data() : nullptr)) return false;
        buffer_.clear();
        buffer_.shrink_to_fit();
        step_ = Step::kHeader;
        break;
    }
  }
}

bool TcpStream::accept_frame() noexcept {
  if (!note_answered(frame_.acked)) return violated();
  if (frame_.kind == FrameKind::kRequest) return begin_request();
  if (frame_.kind == FrameKind::kData) return begin_data();
  if (frame_.bytes != 0) return violated();
  switch (frame_.kind) {
    case FrameKind::kAck:
      return true;
    case FrameKind::kLeft:
      left_.store(true, std::memory_order_release);
      return true;
    case FrameKind::kNoReceive:
    case FrameKind::kNotReady:
      rnr_timer_.store(frame_.status);
      waiting_.store(frame_.kind == FrameKind::kNoReceive ? Outcome::Kind::kNoReceive : Outcome::Kind::kUnreachable);
      waiting_count_.store(frame_.count, std::memory_order_release);
      return true;
    case FrameKind::kFailed: {
      const bool known = frame_.status > IBV_WC_SUCCESS && frame_.status <= IBV_WC_GENERAL_ERR;
      if (!earlier(answered(), frame_.count) || earlier(sent_limit_.load(), frame_.count)) return violated();
      answered_.store(frame_.count - 1, std::memory_order_release);
      failure_.store(known ? static_cast<int>(frame_.status) : static_cast<int>(IBV_WC_REM_OP_ERR),
                     std::memory_order_release);
      return true;
    }
    default:
      return violated();
  }
}

/// The other end says that this end's requests up to `count` are done.
bool TcpStream::note_answered(std::uint32_t count) noexcept {
  if (!earlier(answered(), count)) return true;
  if (earlier(sent_limit_.load(std::memory_order_acquire), count)) return false;
  const std::uint32_t first = reads_begin_.load(std::memory_order_relaxed);
  const bool reads = first != reads_end_.load(std::memory_order_acquire);
  if (reads && !earlier(count, reads_[first % reads_.size()].op.sq_count)) return false;
  answered_.store(count, std::memory_order_release);
  return true;
}

bool TcpStream::begin_data() noexcept {
  const std::uint32_t first = reads_begin_.load(std::memory_order_relaxed);
  if (first == reads_end_.load(std::memory_order_acquire)) return violated();
  const Read& read = reads_[first % reads_.size()];
  if (read.op.sq_count != frame_.count || read.total != frame_.bytes) return violated();
  into_ = Into::kRead;
  step_ = frame_.bytes <= kWholeBytes ? Step::kWhole : Step::kStream;
  return true;
}

bool TcpStream::begin_request() noexcept {
  const bool read = is_read_like(frame_.opcode);
  const bool known = frame_.opcode < 32 && (opcodes_ & opcode_bit(frame_.opcode)) != 0 && !is_local(frame_.opcode);
  if (!known || !earlier(received_, frame_.count) || frame_.bytes > frame_.total || frame_.total > kMaxMessageBytes ||
      (read && frame_.bytes != 0)) {
    return violated();
  }
  received_ = frame_.count;
  step_ = frame_.bytes <= kWholeBytes ? Step::kWhole : Step::kBegin;
  into_ = Into::kNothing;
  return true;
}

/// A large request: where its data goes.
bool TcpStream::begin_stream() noexcept {
  into_ = Into::kNothing;
  if (!broken_) {
    if (!enter()) {
      if (!wait_for(FrameKind::kNotReady)) return false;
    } else {
      into_ = where_to_stream();
      const bool none = into_ == Into::kReceive && receive_ == nullptr;
      leave();
      if (none && !wait_for(FrameKind::kNoReceive)) return false;
      if (none) into_ = Into::kNothing;
    }
  }
  step_ = Step::kStream;
  return true;
}

bool TcpStream::take_stream() noexcept {
  const std::uint64_t length = std::min<std::uint64_t>(available(), frame_.bytes - done_);
  if (length > 0 && into_ != Into::kNothing) {
    // Not ready any more: dropped, as what is refused.
    const bool inside = enter();
    const bool stored = inside && store(in_.get() + in_begin_, length);
    if (!stored && into_ != Into::kRead) {
      conclude(inside ? refuse(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR) : Outcome::failed(IBV_WC_WR_FLUSH_ERR));
      into_ = Into::kNothing;
      broken_ = broken_ || !inside;
    }
    if (inside) leave();
  }
  in_begin_ += length;
  done_ += length;
  if (done_ == frame_.bytes) step_ = Step::kFinish;
  return true;
}

/// Host memory for the next `length` bytes of the frame.
bool TcpStream::place(std::uint64_t length, Pieces& pieces) noexcept {
  if (into_ == Into::kRead) {
    const Read& read = reads_[reads_begin_.load(std::memory_order_relaxed) % reads_.size()];
    SendOp op = read.op;
    op.sges = read.sges;
    if (!gather(own_.process.regions(), own_.pd, op, IBV_ACCESS_LOCAL_WRITE, pieces)) return false;
  } else if (into_ == Into::kWrite) {
    const MrShared* region = find_remote(IBV_ACCESS_REMOTE_WRITE, frame_.total);
    if (region == nullptr) return false;
    const std::uint64_t address = region->addr + (frame_.address - region->iova);
    pieces.items[pieces.count++] = {reinterpret_cast<std::uint8_t*>(address), frame_.total, region};
    pieces.total = frame_.total;
  } else if (into_ == Into::kReceive) {
    if (target_.recv_ring.peek(0) != receive_) return false;
    const TakenReceive receive(target_.recv_ring, *receive_);
    for (std::uint32_t i = 0; i < receive.num_sge; ++i) {
      const ibv_sge& sge = receive.sges[i];
      if (sge.length == 0) continue;
      const MrShared* region =
          find_region(target_.regions, sge.lkey, target_.qp->recv_pd, IBV_ACCESS_LOCAL_WRITE, sge.addr, sge.length);
      if (region == nullptr) return false;
      const std::uint64_t address = region->addr + (sge.addr - region->iova);
      pieces.items[pieces.count++] = {reinterpret_cast<std::uint8_t*>(address), sge.length, region};
      pieces.total += sge.length;
    }
  } else {
    return false;
  }
  if (pieces.total < done_ + length || in_gpu(pieces)) return false;
  pieces.drop_back(pieces.total - done_ - length);
  pieces.drop_front(done_);
  return true;
}

bool TcpStream::store(const std::uint8_t* bytes, std::uint64_t length) noexcept {
  if (into_ == Into::kBuffer) {
    buffer_.insert(buffer_.end(), bytes, bytes + length);
    return true;
  }
  if (into_ == Into::kWrite) {
    const MrShared* region = find_remote(IBV_ACCESS_REMOTE_WRITE, frame_.total);
    Pieces data;
    data.items[data.count++] = {const_cast<std::uint8_t*>(bytes), length, nullptr};
    data.total = length;
    return region != nullptr && put(target_, *region, frame_.address + done_, data) == IBV_WC_SUCCESS;
  }
  Pieces pieces;
  return place(length, pieces) && copy_in(bytes, pieces);
}

/// All of the frame is here: in `payload`, or where it belongs.
bool TcpStream::finish(const std::uint8_t* payload) noexcept {
  if (frame_.kind == FrameKind::kData) return finish_read(payload);
  if (broken_ || (frame_.bytes > kWholeBytes && into_ == Into::kNothing)) return true;
  if (!enter()) return wait_for(FrameKind::kNotReady);
  const Outcome outcome = execute_here(payload);
  leave();
  if (outcome.kind == Outcome::Kind::kNoReceive) return wait_for(FrameKind::kNoReceive);
  // In a moment.
  if (outcome.kind == Outcome::Kind::kUnreachable) parked_ = true;
  if (outcome.kind == Outcome::Kind::kUnreachable) return false;
  return conclude(outcome);
}

bool TcpStream::finish_read(const std::uint8_t* payload) noexcept {
  const std::uint32_t first = reads_begin_.load(std::memory_order_relaxed);
  const Read& read = reads_[first % reads_.size()];
  Pieces pieces;
  SendOp op = read.op;
  op.sges = read.sges;
  bool stored = gather(own_.process.regions(), own_.pd, op, IBV_ACCESS_LOCAL_WRITE, pieces);
  if (stored && payload != nullptr && frame_.bytes > 0) {
    pieces.drop_back(pieces.total - std::min(pieces.total, frame_.bytes));
    stored = pieces.total == frame_.bytes && copy_in(payload, pieces);
  }
  answered_.store(stored ? frame_.count : frame_.count - 1, std::memory_order_release);
  if (!stored) failure_.store(IBV_WC_LOC_PROT_ERR, std::memory_order_release);
  reads_begin_.store(first + 1, std::memory_order_release);
  return true;
}

}  // namespace gdrperf::softnic
