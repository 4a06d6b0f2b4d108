#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "mlx5/format.h"
#include "mlx5/pages.h"
#include "mlx5/watcher.h"
#include "shared/segment/request.h"
#include "shared/sync/spin.h"

namespace gdrperf::softnic::mlx5 {

/// Some of the program's memory. Null: none.
struct Span {
  std::uint8_t* address = nullptr;
  bool in_gpu = false;
};

/// Copies to and from a GPU's memory, which have ended when these return. False: the driver refused.
bool read_gpu(void* to, const std::uint8_t* from, std::size_t bytes) noexcept;
bool write_gpu(std::uint8_t* to, const void* from, std::size_t bytes) noexcept;

/// A doorbell record of a Pages', or one that the program placed by itself.
class Record {
 public:
  explicit Record(Pages& pages) : pages_(&pages), words_(pages.take_record()) {}
  explicit Record(const Span& placed)
      : words_(reinterpret_cast<std::uint32_t*>(placed.address)), in_gpu_(placed.in_gpu) {}
  ~Record() {
    if (pages_ != nullptr) pages_->give_back(words_);
  }
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;
  std::uint32_t load(unsigned which) const noexcept {
    return in_gpu_ ? load_from_gpu(which) : load_record(words_ + which);
  }
  void store(unsigned which, std::uint32_t value) noexcept {
    if (in_gpu_) {
      store_to_gpu(which, value);
    } else {
      store_record(words_ + which, value);
    }
  }
  std::uint32_t* words() const noexcept { return words_; }

 private:
  std::uint32_t load_from_gpu(unsigned which) const noexcept;
  void store_to_gpu(unsigned which, std::uint32_t value) noexcept;

  Pages* pages_ = nullptr;
  std::uint32_t* words_;
  bool in_gpu_ = false;
};

/// Place and size of a QP's rings.
struct Layout {
  std::uint8_t* send = nullptr;
  std::uint32_t send_blocks = 0;  ///< a power of two, or 0
  std::uint8_t* receive = nullptr;
  std::uint32_t receives = 0;  ///< a power of two, or 0
  std::uint32_t receive_bytes = 0;  ///< of each
};

/// The work queues of a QP, or of an SRQ, in mlx5's format. What the device keeps about them is under
/// the lock of the send queue, or of the receive queue.
struct WorkQueues {
  /// As rdma-core's provider lays them out, in memory of their own; `cap` becomes what was granted. Null:
  /// more than mlx5's rings hold.
  static std::unique_ptr<WorkQueues> of_qp(Pages& pages, ibv_qp_cap& cap, bool with_receives);
  static std::unique_ptr<WorkQueues> of_srq(Pages& pages, std::uint32_t receives, std::uint32_t max_sge);
  /// In memory of the program's.
  WorkQueues(const Layout& placed, std::unique_ptr<Record> placed_record, Pages::Register placed_reg);

  /// The send ring is in a GPU: the device reads a copy of it, and fetches what is posted.
  void copy_from_gpu();
  void fetch(std::uint16_t posted) noexcept;
  /// Nothing was posted: the state RESET.
  void restart() noexcept;

  Layout layout;
  std::unique_ptr<Buffer> memory;
  const std::uint8_t* gpu_send = nullptr;  ///< not null: of this ring, layout.send is a copy
  std::unique_ptr<Record> record;
  Pages::Register reg;

  // The device's side.
  std::uint16_t sent = 0;      ///< block of the next WQE to be executed
  std::atomic<std::uint16_t> received{0};  ///< count of the receives that were taken over; written under their lock
  std::uint16_t next_receive = 0;  ///< SRQ: index of the next one
  bool linked = false;  ///< each receive begins with the index of the one behind it: SRQs', but for cyclic ones
  bool stuck = false;  ///< a WQE waits for others in front of it, or for room
  // The driver's side: what ibv_post_send and ibv_post_recv keep for ibv_poll_cq.
  std::uint32_t written = 0;  ///< send WQEs
  std::uint32_t run = 0;      ///< of these, executed
  Spin list_lock;  ///< SRQ: of the list of free receives
  std::uint16_t receive_head = 0;  ///< SRQ: index of the first free one
  std::uint16_t receive_tail = 0;  ///< and of the last one, which is never posted
  std::vector<std::uint64_t> send_ids;     ///< wr_id, by block
  std::vector<std::uint64_t> receive_ids;  ///< by index
  std::unordered_map<std::uint16_t, SendOp> own_ops;  ///< by block: requests that have no WQE of mlx5's here
};

/// A CQ in mlx5's format, in step with the device's own: CQE n is the completion at position n. Under the
/// CQ's lock, but for `written`.
struct CompletionRing {
  CompletionRing(Pages& pages, unsigned ring_shift);
  /// In memory of the program's. `overrun_ignored`: nobody says what was polled. `one_cqe`: collapsed, each
  /// CQE replaces the one before.
  struct Placed {
    Span cqes;
    Span record;
    std::shared_ptr<DoorbellPage> page;
    unsigned shift;
    bool overrun_ignored;
    bool one_cqe;
  };
  explicit CompletionRing(const Placed& placed);
  /// CQEs from one position to another were written: to a GPU's memory as well, where they are to be.
  void show(std::uint64_t from, std::uint64_t to) noexcept;

  std::unique_ptr<Buffer> memory;
  std::uint8_t* gpu = nullptr;  ///< not null: the program's CQEs, of which `cqes` are a copy
  Cqe* cqes;
  std::unique_ptr<Record> record;
  std::shared_ptr<DoorbellPage> page;
  unsigned shift;
  bool overrun_ignored = false;
  bool one_cqe = false;
  bool shown = false;  ///< its addresses are the program's: it does not move any more
  std::atomic<std::uint64_t> written{0};  ///< position of the next CQE
};

/// One receive's segments; 0 to `most`. Nothing in it is believed.
unsigned read_receive(const WorkQueues& queues, std::uint32_t index, ibv_sge* sges, unsigned most) noexcept;
void write_receive(WorkQueues& queues, std::uint32_t index, const ibv_sge* sges, unsigned count) noexcept;
/// Index of the receive behind this one.
std::uint16_t next_of(const WorkQueues& queues, std::uint32_t index) noexcept;
void set_next(WorkQueues& queues, std::uint32_t index, std::uint16_t next) noexcept;

}  // namespace gdrperf::softnic::mlx5
