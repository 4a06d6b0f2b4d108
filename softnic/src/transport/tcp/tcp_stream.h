#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "gdrperf/base/mutex.h"
#include "paths/target.h"
#include "remote/hub.h"
#include "shared/segment/completion.h"
#include "transport/rc/transport.h"

struct iovec;

namespace gdrperf::softnic {

/// QP whose requests a stream sends; under the lock of the QP's send queue.
class TcpRequests {
 public:
  /// The one that comes after the last that was sent and `ahead` others; null:
  /// none may go yet.
  virtual const SendOp* next(std::uint32_t ahead) noexcept = 0;
  /// Parts of its data that travel.
  virtual Part part() const noexcept { return {}; }
  /// One more was sent.
  virtual void sent() noexcept = 0;
  /// The next one cannot be sent.
  virtual void spoiled(ibv_wc_status status) noexcept = 0;

 protected:
  ~TcpRequests() = default;
};

/// The QP of a stream.
class TcpOwner {
 public:
  /// Looks at what was answered, and sends what there is. False: its send queue
  /// is in use; whoever uses it does not do that.
  virtual bool move_on() noexcept = 0;

 protected:
  ~TcpOwner() = default;
};

/// A QP's connection to one on another host. Requests go out as they are posted
/// and are answered in order; the other end's are executed here, on the thread
/// that polls for this QP or, where none does, on the hub's. Data goes from
/// registered memory to the socket and back without a copy in between, small
/// messages apart. Thread-safe; locks are taken in the order: incoming, send
/// queue, outgoing (of the first two the second is only tried for).
class TcpStream final : public TcpEnd {
 public:
  TcpStream(const Initiator& own, const TcpRoute& expected, std::uint32_t opcodes, bool lossy, TcpOwner& owner,
            Hub& hub);
  ~TcpStream() override;

  // --- TcpEnd
  const TcpRoute& expected() const noexcept override { return expected_; }
  bool take(UniqueFd& socket) noexcept override;
  int socket() const noexcept override { return fd_.load(std::memory_order_acquire); }
  Wish serve() noexcept override;
  bool polled_within(std::uint64_t ns) const noexcept override;

  // --- requests, under the send queue's lock
  void pump(TcpRequests& requests) noexcept;
  /// Executes one, and waits for its end for a while.
  Outcome execute(const SendOp& op, const Part& part) noexcept;
  bool open() const noexcept { return socket() >= 0 && !lost(); }
  bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }
  /// All requests up to this one are done.
  std::uint32_t answered() const noexcept { return answered_.load(std::memory_order_acquire); }
  /// The one behind those has failed: how. SUCCESS: it has not.
  ibv_wc_status failure() const noexcept {
    return static_cast<ibv_wc_status>(failure_.load(std::memory_order_acquire));
  }
  /// Answer it waits for at the other end; kDone: nothing is known of it.
  Outcome::Kind waits() const noexcept {
    if (left()) return Outcome::Kind::kUnreachable;
    const bool still = static_cast<std::int32_t>(waiting_count_.load(std::memory_order_acquire) - answered()) > 0;
    return still ? waiting_.load() : Outcome::Kind::kDone;
  }
  /// The other end's QP is gone: as on one host nobody answers, which is no death.
  bool left() const noexcept { return left_.load(std::memory_order_acquire); }
  std::uint8_t rnr_timer() const noexcept { return rnr_timer_.load(std::memory_order_relaxed) & 31; }
  std::uint32_t reads_under_way() const noexcept { return reads_end_.load() - reads_begin_.load(); }
  /// The number of the last one of these; 0: there is none.
  std::uint32_t last_read() const noexcept {
    return reads_under_way() > 0 ? reads_[(reads_end_.load() - 1) % reads_.size()].op.sq_count : 0;
  }
  /// Grows while anything is sent or received.
  std::uint64_t moved() const noexcept { return moved_.load(std::memory_order_relaxed); }
  /// No more is executed for the other end, and nothing is sent to it.
  void cut() noexcept;

  // --- control path
  void poll() noexcept EXCLUDES(in_mutex_);
  /// Sends all that is owed; no thread is in it when this returns, nor later.
  void stop() noexcept;
  /// Waits until no thread uses memory that it had looked up before.
  void settle() noexcept EXCLUDES(in_mutex_);

 private:
  // --- incoming (tcp_in.cc); what returns bool: false, it cannot go on now
  enum class Into : std::uint8_t { kNothing, kWrite, kReceive, kBuffer, kRead };
  enum class Step : std::uint8_t { kHeader, kWhole, kBegin, kStream, kFinish };
  bool drive() noexcept REQUIRES(in_mutex_);
  bool read_all() noexcept REQUIRES(in_mutex_);
  bool parse() noexcept REQUIRES(in_mutex_);
  bool accept_frame() noexcept REQUIRES(in_mutex_);
  bool note_answered(std::uint32_t count) noexcept REQUIRES(in_mutex_);
  bool begin_data() noexcept REQUIRES(in_mutex_);
  bool begin_request() noexcept REQUIRES(in_mutex_);
  bool begin_stream() noexcept REQUIRES(in_mutex_);
  bool take_stream() noexcept REQUIRES(in_mutex_);
  bool finish(const std::uint8_t* payload) noexcept REQUIRES(in_mutex_);
  bool finish_read(const std::uint8_t* payload) noexcept REQUIRES(in_mutex_);
  bool store(const std::uint8_t* bytes, std::uint64_t length) noexcept REQUIRES(in_mutex_);
  bool place(std::uint64_t length, Pieces& pieces) noexcept REQUIRES(in_mutex_);
  bool read_direct() noexcept REQUIRES(in_mutex_);
  void wait_for_much() noexcept REQUIRES(in_mutex_);
  bool read_buffered() noexcept REQUIRES(in_mutex_);
  bool got(std::int64_t count) noexcept REQUIRES(in_mutex_);
  bool violated() noexcept;
  std::size_t available() const noexcept REQUIRES(in_mutex_) { return in_end_ - in_begin_; }
  // --- the other end's requests (tcp_execute.cc), in a turn on this QP
  Outcome execute_here(const std::uint8_t* payload) noexcept REQUIRES(in_mutex_);
  Outcome write_here(const std::uint8_t* payload) noexcept REQUIRES(in_mutex_);
  Outcome send_here(const std::uint8_t* payload) noexcept REQUIRES(in_mutex_);
  Outcome read_here() noexcept REQUIRES(in_mutex_);
  Outcome atomic_here() noexcept REQUIRES(in_mutex_);
  Outcome complete_receive(RecvCell& receive, Completion& completion, ibv_wc_status copy_error) noexcept
      REQUIRES(in_mutex_);
  Outcome refuse(ibv_wc_status status, std::uint32_t event) noexcept REQUIRES(in_mutex_);
  Outcome fail_receiver(ibv_wc_status status, std::uint32_t event) noexcept REQUIRES(in_mutex_);
  Into where_to_stream() noexcept REQUIRES(in_mutex_);
  const MrShared* find_remote(unsigned access, std::uint64_t length) const noexcept REQUIRES(in_mutex_);
  bool conclude(const Outcome& outcome) noexcept REQUIRES(in_mutex_);
  bool wait_for(FrameKind why) noexcept REQUIRES(in_mutex_);
  bool enter() noexcept REQUIRES(in_mutex_);
  void leave() noexcept REQUIRES(in_mutex_);

  // --- outgoing (tcp_out.cc)
  struct Answer {
    enum class Kind : std::uint8_t { kRead, kWord, kFailed };
    Kind kind;
    std::uint8_t status;  ///< kFailed
    std::uint32_t count;
    std::uint32_t rkey;
    std::uint64_t address;
    std::uint64_t total;
    std::uint64_t word;  ///< of an atomic
  };
  enum class Item : std::uint8_t { kNone, kNote, kRequest, kAnswer };
  struct Batch;
  void send_all(TcpRequests* requests) noexcept REQUIRES(out_mutex_);
  void fill_up() noexcept REQUIRES(out_mutex_);
  bool is_full() noexcept REQUIRES(out_mutex_);
  bool fill(Batch& batch, TcpRequests* requests) noexcept REQUIRES(out_mutex_);
  bool add_request(Batch& batch, const SendOp& op, TcpRequests& requests) noexcept REQUIRES(out_mutex_);
  bool add_answer(Batch& batch, const Answer& answer) noexcept REQUIRES(out_mutex_);
  void add_notes(Batch& batch) noexcept REQUIRES(out_mutex_);
  bool answer_pieces(const Answer& answer, Pieces& pieces) noexcept REQUIRES(out_mutex_);
  void account(const Batch& batch, std::uint64_t bytes, TcpRequests* requests) noexcept REQUIRES(out_mutex_);
  void remember_read(const SendOp& op, std::uint64_t total) noexcept REQUIRES(out_mutex_);
  std::uint32_t ackable() noexcept REQUIRES(out_mutex_);
  void note(FrameKind kind, std::uint32_t count, std::uint8_t status) noexcept EXCLUDES(out_mutex_);
  Frame header(FrameKind kind, std::uint32_t count) noexcept REQUIRES(out_mutex_);
  /// Sends acknowledgements that no request of this end has taken along; how long
  /// one may still do so (ns), 0: none is owed.
  std::uint64_t settle_acks() noexcept EXCLUDES(out_mutex_);
  /// For whoever may not come again: the hub sends what is then still owed.
  void settle_or_leave() noexcept REQUIRES(in_mutex_);
  void lose() noexcept;

  const Initiator own_;
  const TcpRoute expected_;
  const std::uint32_t opcodes_;
  const bool lossy_;
  TcpOwner& owner_;
  Hub& hub_;
  std::atomic<int> fd_{-1};
  std::atomic<bool> lost_{false};
  std::atomic<bool> left_{false};
  std::atomic<bool> visited_{false};  ///< the hub will look at it: it was asked to, and has not yet
  std::atomic<bool> mute_{false};  ///< the other end has closed: what it said before is still read
  std::atomic<std::uint64_t> polled_ns_{0};
  std::atomic<std::uint64_t> moved_{0};

  // The other end's words about this one's requests.
  std::atomic<std::uint32_t> answered_{0};
  std::atomic<int> failure_{IBV_WC_SUCCESS};
  std::atomic<std::uint32_t> waiting_count_{0};
  std::atomic<Outcome::Kind> waiting_{Outcome::Kind::kDone};
  std::atomic<std::uint8_t> rnr_timer_{0};
  std::atomic<std::uint32_t> sent_limit_{0};  ///< no request behind this one was sent

  /// READs and atomics under way: written by who sends, read by who receives.
  struct Read {
    SendOp op;
    std::uint64_t total;
    ibv_sge sges[kMaxSge];
  };
  std::array<Read, 2 * kMaxRdAtomic> reads_;
  std::atomic<std::uint32_t> reads_begin_{0};
  std::atomic<std::uint32_t> reads_end_{0};

  Mutex in_mutex_;
  std::uint32_t sync_sent_ = 0;  ///< execute() has sent this one; under the send queue's lock
  bool stopped_ GUARDED_BY(in_mutex_) = false;
  bool broken_ GUARDED_BY(in_mutex_) = false;  ///< a request has failed: what follows is dropped
  bool told_waiting_ GUARDED_BY(in_mutex_) = false;
  bool parked_ GUARDED_BY(in_mutex_) = false;
  std::uint32_t low_water_ GUARDED_BY(in_mutex_) = 1;  ///< the socket is ready with so many bytes
  bool drained_ GUARDED_BY(in_mutex_) = false;  ///< the last read took all there was
  Target target_ GUARDED_BY(in_mutex_);  ///< this QP, as the one that executes sees it
  Step step_ GUARDED_BY(in_mutex_) = Step::kHeader;
  Into into_ GUARDED_BY(in_mutex_) = Into::kNothing;
  Frame frame_ GUARDED_BY(in_mutex_){};
  std::uint64_t done_ GUARDED_BY(in_mutex_) = 0;  ///< of its bytes
  const RecvCell* receive_ GUARDED_BY(in_mutex_) = nullptr;
  std::vector<std::uint8_t> buffer_ GUARDED_BY(in_mutex_);
  std::unique_ptr<std::uint8_t[]> in_ GUARDED_BY(in_mutex_);
  std::size_t in_begin_ GUARDED_BY(in_mutex_) = 0;
  std::size_t in_end_ GUARDED_BY(in_mutex_) = 0;
  std::uint32_t received_ GUARDED_BY(in_mutex_) = 0;  ///< the last request's number

  std::atomic<std::uint32_t> executed_{0};  ///< up to this one the other end's requests are done
  std::atomic<std::uint64_t> executed_bytes_{0};

  Mutex out_mutex_;
  std::deque<Answer> answers_ GUARDED_BY(out_mutex_);
  std::string notes_ GUARDED_BY(out_mutex_);
  Item partial_ GUARDED_BY(out_mutex_) = Item::kNone;  ///< was sent in part
  std::uint64_t partial_sent_ GUARDED_BY(out_mutex_) = 0;
  Frame partial_header_ GUARDED_BY(out_mutex_){};
  std::vector<std::uint8_t> bounce_ GUARDED_BY(out_mutex_);  ///< of a message in GPU memory
  std::atomic<bool> blocked_{false};
  std::uint64_t ask_again_ns_ GUARDED_BY(out_mutex_) = 0;  ///< whether there is room
  std::uint32_t ack_sent_ GUARDED_BY(out_mutex_) = 0;
  std::uint64_t ack_bytes_ GUARDED_BY(out_mutex_) = 0;   ///< executed_bytes_ then
  std::uint64_t ack_owed_ns_ GUARDED_BY(out_mutex_) = 0; ///< since then; 0: none
  std::uint64_t ack_alone_ns_ GUARDED_BY(out_mutex_) = 0;///< when one was last sent by itself
  int answers_soon_ GUARDED_BY(out_mutex_) = 0;          ///< times in a row that a request followed at once
};

}  // namespace gdrperf::softnic
