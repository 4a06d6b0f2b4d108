#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

#include "gpu/message.h"
#include "shared/segment/completion.h"
#include "transport/tcp/tcp_stream.h"

/// Sending half of a stream: requests, answers to the other end's, acknowledgements.
namespace gdrperf::softnic {
namespace {

constexpr unsigned kMostItems = 32;
constexpr unsigned kMostPieces = 96;
/// More than a socket takes at once is not worth being looked up.
constexpr std::uint64_t kMostBatchBytes = 4u << 20;
/// A full socket is asked again after so long.
constexpr std::uint64_t kFullSocketNs = 4'000;
/// An acknowledgement waits so long for a request that takes it along, if the last
/// ones found one.
constexpr std::uint64_t kAckPauseNs = 30'000;
constexpr int kSoonEnough = 4;
/// And never longer than for so many bytes or messages.
constexpr std::uint64_t kAckBytes = 256u << 10;
constexpr std::uint32_t kAckCount = 32;

bool reads(const SendOp& op) { return is_read_like(op.opcode); }

}  // namespace

/// Limit of one call of sendmsg.
struct TcpStream::Batch {
  iovec pieces[kMostPieces];
  unsigned piece_count = 0;
  struct Entry {
    Item item;
    std::uint64_t length;  ///< all of it, with what was sent before
  } entries[kMostItems];
  Frame headers[kMostItems];
  unsigned count = 0;
  std::uint32_t requests = 0;
  unsigned answers = 0;
  std::uint64_t skip = 0;  ///< of the first one was sent before
  std::uint64_t bytes = 0;

  bool has_room() const {
    return count < kMostItems && piece_count + kMaxSge + 2 < kMostPieces && bytes < kMostBatchBytes;
  }
  void add(Item item, std::uint64_t length) { entries[count++] = {item, length}; }
  void piece(const void* address, std::uint64_t length) {
    const std::uint64_t cut = skip < length ? skip : length;
    skip -= cut;
    if (length == cut) return;
    pieces[piece_count++] = {static_cast<std::uint8_t*>(const_cast<void*>(address)) + cut, length - cut};
    bytes += length - cut;
  }
  void add_pieces(const Pieces& data) {
    for (unsigned i = 0; i < data.count; ++i) piece(data.items[i].address, data.items[i].length);
  }
};

void TcpStream::pump(TcpRequests& requests) noexcept {
  const MutexLock guard(out_mutex_);
  send_all(&requests);
}

void TcpStream::send_all(TcpRequests* requests) noexcept {
  while (open() && !mute_.load(std::memory_order_relaxed) && !is_full()) {
    Batch batch;
    batch.skip = partial_ == Item::kNone ? 0 : partial_sent_;
    if (!fill(batch, requests) || batch.count == 0) return;
    msghdr message{};
    message.msg_iov = batch.pieces;
    message.msg_iovlen = batch.piece_count;
    ssize_t sent;
    do {
      sent = ::sendmsg(socket(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      fill_up();
      return;
    }
    if (sent < 0) {
      // Its last acknowledgement may lie here unread: drive() finds the end behind it.
      mute_.store(true, std::memory_order_relaxed);
      return;
    }
    blocked_.store(false, std::memory_order_relaxed);
    moved_.fetch_add(1, std::memory_order_relaxed);
    account(batch, static_cast<std::uint64_t>(sent), requests);
    if (static_cast<std::uint64_t>(sent) < batch.bytes) {
      fill_up();
      return;
    }
  }
}

/// The socket took no more.
void TcpStream::fill_up() noexcept {
  ask_again_ns_ = monotonic_ns() + kFullSocketNs;
  if (!blocked_.exchange(true)) hub_.want_output(*this);
}

/// There was no room, and there is little yet. Whoever sends each little bit at once for which
/// there is room sends small segments, each of which wakes the other end.
bool TcpStream::is_full() noexcept {
  if (!blocked_.load(std::memory_order_relaxed)) return false;
  const std::uint64_t now = monotonic_ns();
  if (now < ask_again_ns_) return true;
  pollfd entry{socket(), POLLOUT, 0};
  if (::poll(&entry, 1, 0) != 0) return false;
  ask_again_ns_ = now + kFullSocketNs;
  return true;
}

/// Sends the frame begun first; then notes, answers, requests. False: a frame is
/// a request, and it cannot go on now.
bool TcpStream::fill(Batch& batch, TcpRequests* requests) noexcept {
  if (partial_ == Item::kRequest) {
    const SendOp* op = requests != nullptr ? requests->next(0) : nullptr;
    if (op == nullptr || !add_request(batch, *op, *requests)) return false;
  } else if (partial_ == Item::kAnswer && !add_answer(batch, answers_.front())) {
    lose();
    return false;
  } else if (partial_ == Item::kNote) {
    add_notes(batch);
  }
  // Notes are appended to while they lie here.
  if (partial_ != Item::kNote && !notes_.empty()) add_notes(batch);
  while (batch.answers < answers_.size() && batch.has_room()) {
    Answer& answer = answers_[batch.answers];
    const unsigned before = batch.count;
    if (!add_answer(batch, answer)) {
      // Its memory is gone.
      answer.kind = Answer::Kind::kFailed;
      answer.status = IBV_WC_REM_OP_ERR;
    } else if (batch.count == before) {
      return true;
    }
  }
  while (requests != nullptr && batch.has_room()) {
    const SendOp* op = requests->next(batch.requests);
    if (op == nullptr || !add_request(batch, *op, *requests)) break;
  }
  return true;
}

Frame TcpStream::header(FrameKind kind, std::uint32_t count) noexcept {
  Frame frame{};
  frame.kind = kind;
  frame.count = count;
  frame.acked = ackable();
  ack_sent_ = frame.acked;
  ack_bytes_ = executed_bytes_.load(std::memory_order_relaxed);
  return frame;
}

/// READs that were not answered yet are not acknowledged, nor is what came after them.
std::uint32_t TcpStream::ackable() noexcept {
  return answers_.empty() ? executed_.load(std::memory_order_acquire) : answers_.front().count - 1;
}

bool TcpStream::add_request(Batch& batch, const SendOp& op, TcpRequests& requests) noexcept {
  const bool goes_on = partial_ == Item::kRequest && batch.count == 0;
  Pieces data;
  const bool inside = gather(own_.process.regions(), own_.pd, op, reads(op) ? IBV_ACCESS_LOCAL_WRITE : 0, data);
  if (!inside) {
    if (goes_on) lose();
    if (batch.count == 0) requests.spoiled(IBV_WC_LOC_PROT_ERR);
    return false;
  }
  const std::uint64_t total = data.total;
  requests.part().apply(data);
  const bool bounced = !reads(op) && in_gpu(data);
  if (bounced) {
    // One at a time.
    if (batch.count != 0) return false;
    bounce_.resize(data.total);
    if (!goes_on && !copy_out(bounce_.data(), data)) {
      requests.spoiled(IBV_WC_LOC_PROT_ERR);
      return false;
    }
  }
  Frame& frame = batch.headers[batch.count];
  if (goes_on) {
    frame = partial_header_;
  } else {
    const bool soon = ack_alone_ns_ != 0 && monotonic_ns() - ack_alone_ns_ < kAckPauseNs;
    if (soon || (ack_owed_ns_ != 0 && ackable() != ack_sent_)) answers_soon_ += answers_soon_ < 2 * kSoonEnough ? 1 : 0;
    ack_alone_ns_ = ack_owed_ns_ = 0;
    frame = header(FrameKind::kRequest, op.sq_count);
    frame.opcode = op.opcode;
    frame.solicited = (op.flags & IBV_SEND_SOLICITED) != 0 ? 1 : 0;
    frame.imm = op.imm;
    frame.rkey = op.rkey;
    frame.total = static_cast<std::uint32_t>(reads(op) ? data.total : total);
    frame.bytes = reads(op) ? 0 : data.total;
    frame.address = op.remote_addr;
    frame.compare_add = op.compare_add;
    frame.swap = op.swap;
    if (reads(op)) remember_read(op, data.total);
    sent_limit_.store(op.sq_count, std::memory_order_release);
  }
  batch.add(Item::kRequest, sizeof frame + frame.bytes);
  batch.piece(&frame, sizeof frame);
  if (bounced) {
    batch.piece(bounce_.data(), bounce_.size());
  } else if (!reads(op)) {
    batch.add_pieces(data);
  }
  ++batch.requests;
  return true;
}

/// Before it is sent: the answer may come at once.
void TcpStream::remember_read(const SendOp& op, std::uint64_t total) noexcept {
  const std::uint32_t end = reads_end_.load(std::memory_order_relaxed);
  const std::uint32_t mask = static_cast<std::uint32_t>(reads_.size()) - 1;
  if (end != reads_begin_.load(std::memory_order_acquire) && reads_[(end - 1) & mask].op.sq_count == op.sq_count)
    return;
  Read& read = reads_[end & mask];
  read.op = op;
  read.total = total;
  for (unsigned i = 0; i < op.num_sge; ++i) read.sges[i] = op.sges[i];
  reads_end_.store(end + 1, std::memory_order_release);
}

void TcpStream::add_notes(Batch& batch) noexcept {
  batch.add(Item::kNote, notes_.size());
  batch.piece(notes_.data(), notes_.size());
}

/// Address of the memory that is read; false: it is not there any more.
bool TcpStream::answer_pieces(const Answer& answer, Pieces& pieces) noexcept {
  const Regions& regions = own_.process.regions();
  const MrShared* region =
      find_region(regions, answer.rkey, own_.pd, IBV_ACCESS_REMOTE_READ, answer.address, answer.total);
  if (region == nullptr) {
    region =
        find_window(regions, answer.rkey, own_.pd, own_.number, IBV_ACCESS_REMOTE_READ, answer.address, answer.total);
  }
  if (region == nullptr) return false;
  const std::uint64_t address = region->addr + (answer.address - region->iova);
  pieces.items[pieces.count++] = {reinterpret_cast<std::uint8_t*>(address), answer.total, region};
  pieces.total = answer.total;
  return true;
}

bool TcpStream::add_answer(Batch& batch, const Answer& answer) noexcept {
  const bool goes_on = partial_ == Item::kAnswer && batch.count == 0;
  Pieces data;
  if (answer.kind == Answer::Kind::kRead && answer.total > 0 && !answer_pieces(answer, data)) return false;
  if (in_gpu(data)) {
    if (batch.answers != 0 && !goes_on) return true;
    bounce_.resize(data.total);
    if (!goes_on && !copy_out(bounce_.data(), data)) return false;
    data.items[0] = {bounce_.data(), bounce_.size(), nullptr};
  }
  Frame& frame = batch.headers[batch.count];
  const bool failed = answer.kind == Answer::Kind::kFailed;
  if (goes_on) {
    frame = partial_header_;
  } else {
    frame = header(failed ? FrameKind::kFailed : FrameKind::kData, answer.count);
    frame.acked = answer.count - 1;
    frame.status = answer.status;
    frame.bytes = failed ? 0 : answer.total;
  }
  batch.add(Item::kAnswer, sizeof frame + frame.bytes);
  batch.piece(&frame, sizeof frame);
  if (answer.kind == Answer::Kind::kRead) batch.add_pieces(data);
  if (answer.kind == Answer::Kind::kWord) batch.piece(&answer.word, sizeof answer.word);
  ++batch.answers;
  return true;
}

/// So many bytes of the batch were sent.
void TcpStream::account(const Batch& batch, std::uint64_t bytes, TcpRequests* requests) noexcept {
  bytes += partial_ == Item::kNone ? 0 : partial_sent_;
  partial_ = Item::kNone;
  for (unsigned i = 0; i < batch.count; ++i) {
    const Batch::Entry& entry = batch.entries[i];
    if (bytes < entry.length) {
      if (bytes == 0) return;
      partial_ = entry.item;
      partial_sent_ = bytes;
      partial_header_ = batch.headers[i];
      return;
    }
    bytes -= entry.length;
    if (entry.item == Item::kNote) notes_.erase(0, entry.length);
    if (entry.item == Item::kAnswer) answers_.pop_front();
    if (entry.item == Item::kRequest) requests->sent();
  }
}

void TcpStream::note(FrameKind kind, std::uint32_t count, std::uint8_t status) noexcept {
  const MutexLock guard(out_mutex_);
  Frame frame = header(kind, count);
  frame.status = status;
  notes_.append(reinterpret_cast<const char*>(&frame), sizeof frame);
  if (partial_ != Item::kRequest) send_all(nullptr);
}

std::uint64_t TcpStream::settle_acks() noexcept {
  const MutexLock guard(out_mutex_);
  if (!answers_.empty() || (!notes_.empty() && partial_ == Item::kNone)) {
    if (partial_ != Item::kRequest) send_all(nullptr);
    return 0;
  }
  const std::uint32_t owed = ackable() - ack_sent_;
  if (owed == 0) {
    ack_owed_ns_ = 0;
    return 0;
  }
  const std::uint64_t now = monotonic_ns();
  const bool many = executed_bytes_.load(std::memory_order_relaxed) - ack_bytes_ >= kAckBytes || owed >= kAckCount;
  if (!many && answers_soon_ >= kSoonEnough) {
    if (ack_owed_ns_ == 0) ack_owed_ns_ = now;
    if (now - ack_owed_ns_ < kAckPauseNs) return kAckPauseNs;
  }
  if (ack_alone_ns_ != 0 || ack_owed_ns_ != 0) answers_soon_ = 0;
  ack_owed_ns_ = 0;
  ack_alone_ns_ = now;
  if (notes_.empty()) {
    const Frame frame = header(FrameKind::kAck, 0);
    notes_.append(reinterpret_cast<const char*>(&frame), sizeof frame);
  }
  if (partial_ != Item::kRequest) send_all(nullptr);
  return 0;
}

}  // namespace gdrperf::softnic
