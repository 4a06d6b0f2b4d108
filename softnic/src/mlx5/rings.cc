#include "mlx5/rings.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "device/device.h"
#include "gpu/memory.h"
#include "mlx5/cqe.h"

namespace gdrperf::softnic::mlx5 {
namespace {

/// What rdma-core's provider reserves in front of an RC request's data: control, and the largest of
/// remote address and atomic, or a memory key's change.
constexpr std::uint32_t kRequestHead = 192;
constexpr std::uint32_t kInlineHead = 4;
/// Control and remote address, in front of inline data.
constexpr std::uint32_t kWriteHead = 2 * kOctoword;

std::uint32_t rounded(std::uint32_t bytes, std::uint32_t to) { return (bytes + to - 1) / to * to; }

std::uint32_t wqe_bytes_of(const ibv_qp_cap& cap) {
  const std::uint32_t inlined = rounded(cap.max_inline_data + kInlineHead, kOctoword);
  return rounded(kRequestHead + std::max(cap.max_send_sge * kOctoword, inlined), kBlockBytes);
}

}  // namespace

WorkQueues::WorkQueues(const Layout& placed, std::unique_ptr<Record> placed_record, Pages::Register placed_reg)
    : layout(placed), record(std::move(placed_record)), reg(std::move(placed_reg)), send_ids(placed.send_blocks),
      receive_ids(placed.receives) {}

std::unique_ptr<WorkQueues> WorkQueues::of_qp(Pages& pages, ibv_qp_cap& cap, bool with_receives) {
  Layout layout;
  if (cap.max_inline_data > kMaxWqeBytes - kWriteHead - kInlineHead) return nullptr;
  cap.max_send_wr = std::max(cap.max_send_wr, 1u);
  const std::uint32_t bytes = wqe_bytes_of(cap);
  layout.send_blocks = std::bit_ceil(cap.max_send_wr * (bytes / kBlockBytes));
  if (layout.send_blocks > kMaxBlocks) return nullptr;
  // All that fits into a WQE of that size is granted, as by rdma-core's provider.
  cap.max_send_sge = std::clamp((bytes - kRequestHead) / kOctoword, cap.max_send_sge, kMaxSge);
  cap.max_inline_data = std::max(cap.max_inline_data, std::min(bytes, kMaxWqeBytes) - kWriteHead - kInlineHead);
  if (with_receives && cap.max_recv_wr > 0) {
    layout.receives = std::bit_ceil(cap.max_recv_wr);
    layout.receive_bytes = std::bit_ceil(std::max(cap.max_recv_sge, 1u) * kOctoword);
    cap.max_recv_wr = layout.receives;
    cap.max_recv_sge = layout.receive_bytes / kOctoword;
  }
  const std::size_t receive_size = std::size_t{layout.receives} * layout.receive_bytes;
  auto memory = std::make_unique<Buffer>(rounded(static_cast<std::uint32_t>(receive_size), kBlockBytes) +
                                         std::size_t{layout.send_blocks} * kBlockBytes);
  layout.receive = memory->data();
  layout.send = memory->data() + rounded(static_cast<std::uint32_t>(receive_size), kBlockBytes);
  auto queues = std::make_unique<WorkQueues>(layout, std::make_unique<Record>(pages), pages.next_register());
  queues->memory = std::move(memory);
  return queues;
}

std::unique_ptr<WorkQueues> WorkQueues::of_srq(Pages& pages, std::uint32_t receives, std::uint32_t max_sge) {
  Layout layout;
  // One is always the last of the list, and never posted.
  layout.receives = std::bit_ceil(receives + 1);
  layout.receive_bytes = std::bit_ceil((1 + std::max(max_sge, 1u)) * kOctoword);
  auto memory = std::make_unique<Buffer>(std::size_t{layout.receives} * layout.receive_bytes);
  layout.receive = memory->data();
  auto queues = std::make_unique<WorkQueues>(layout, std::make_unique<Record>(pages), Pages::Register{});
  queues->memory = std::move(memory);
  for (std::uint32_t i = 0; i < layout.receives; ++i)
    set_next(*queues, i, static_cast<std::uint16_t>((i + 1) & (layout.receives - 1)));
  queues->receive_tail = static_cast<std::uint16_t>(layout.receives - 1);
  queues->linked = true;
  return queues;
}

CompletionRing::CompletionRing(Pages& pages, unsigned ring_shift)
    : memory(std::make_unique<Buffer>(sizeof(Cqe) << ring_shift)), cqes(reinterpret_cast<Cqe*>(memory->data())),
      record(std::make_unique<Record>(pages)), page(pages.first_page()), shift(ring_shift) {
  clear_cqes(cqes, 1u << shift);
}

CompletionRing::CompletionRing(const Placed& placed)
    : cqes(reinterpret_cast<Cqe*>(placed.cqes.address)),
      record(std::make_unique<Record>(placed.record)),
      page(placed.page),
      shift(placed.shift),
      overrun_ignored(placed.overrun_ignored),
      one_cqe(placed.one_cqe) {
  if (!placed.cqes.in_gpu) return;
  memory = std::make_unique<Buffer>(sizeof(Cqe) << shift);
  gpu = placed.cqes.address;
  cqes = reinterpret_cast<Cqe*>(memory->data());
  clear_cqes(cqes, 1u << shift);
}

void CompletionRing::show(std::uint64_t from, std::uint64_t to) noexcept {
  if (gpu == nullptr || from == to) return;
  if (one_cqe) {
    write_gpu(gpu, cqes, sizeof(Cqe));
    return;
  }
  const std::uint64_t mask = (std::uint64_t{1} << shift) - 1;
  const std::uint64_t first = std::min(to - from, mask + 1 - (from & mask));
  write_gpu(gpu + (from & mask) * sizeof(Cqe), cqes + (from & mask), first * sizeof(Cqe));
  if (first < to - from) write_gpu(gpu, cqes, (to - from - first) * sizeof(Cqe));
}

bool read_gpu(void* to, const std::uint8_t* from, std::size_t bytes) noexcept {
  const Piece piece{static_cast<std::uint8_t*>(to), bytes, nullptr};
  return gpu::copy_from(from, nullptr, &piece, 1) == 0;
}

bool write_gpu(std::uint8_t* to, const void* from, std::size_t bytes) noexcept {
  const Piece piece{static_cast<std::uint8_t*>(const_cast<void*>(from)), bytes, nullptr};
  return gpu::copy_to(to, nullptr, &piece, 1) == 0;
}

std::uint32_t Record::load_from_gpu(unsigned which) const noexcept {
  std::uint32_t word = 0;
  return read_gpu(&word, reinterpret_cast<const std::uint8_t*>(words_ + which), sizeof word) ? be32toh(word) : 0;
}

void Record::store_to_gpu(unsigned which, std::uint32_t value) noexcept {
  const std::uint32_t word = htobe32(value);
  write_gpu(reinterpret_cast<std::uint8_t*>(words_ + which), &word, sizeof word);
}

void WorkQueues::copy_from_gpu() {
  memory = std::make_unique<Buffer>(std::size_t{layout.send_blocks} * kBlockBytes);
  gpu_send = layout.send;
  layout.send = memory->data();
}

void WorkQueues::fetch(std::uint16_t posted) noexcept {
  const std::uint32_t count = std::min<std::uint32_t>(static_cast<std::uint16_t>(posted - sent), layout.send_blocks);
  const std::uint32_t from = sent & (layout.send_blocks - 1);
  const std::uint32_t first = std::min(count, layout.send_blocks - from);
  const std::size_t at = std::size_t{from} * kBlockBytes;
  if (first > 0) read_gpu(layout.send + at, gpu_send + at, std::size_t{first} * kBlockBytes);
  if (first < count) read_gpu(layout.send, gpu_send, std::size_t{count - first} * kBlockBytes);
}

void WorkQueues::restart() noexcept {
  sent = next_receive = 0;
  received.store(0, std::memory_order_relaxed);
  written = run = 0;
  stuck = false;
  own_ops.clear();
  record->store(kReceiveRecord, 0);
  record->store(kSendRecord, 0);
}

namespace {

std::uint8_t* receive_at(const WorkQueues& queues, std::uint32_t index) noexcept {
  return queues.layout.receive + std::size_t{index & (queues.layout.receives - 1)} * queues.layout.receive_bytes;
}

}  // namespace

unsigned read_receive(const WorkQueues& queues, std::uint32_t index, ibv_sge* sges, unsigned most) noexcept {
  const std::uint8_t* at = receive_at(queues, index) + (queues.linked ? kOctoword : 0);
  const std::uint8_t* const end = receive_at(queues, index) + queues.layout.receive_bytes;
  unsigned count = 0;
  for (; at < end && count < most; at += kOctoword) {
    Data data;
    std::memcpy(&data, at, sizeof data);
    const std::uint32_t key = be32toh(data.key);
    const std::uint32_t bytes = be32toh(data.bytes);
    if (key == kNoKey && bytes == 0) break;
    sges[count++] = {be64toh(data.address), bytes, key};
  }
  return count;
}

void write_receive(WorkQueues& queues, std::uint32_t index, const ibv_sge* sges, unsigned count) noexcept {
  std::uint8_t* at = receive_at(queues, index) + (queues.linked ? kOctoword : 0);
  const std::uint8_t* const end = receive_at(queues, index) + queues.layout.receive_bytes;
  for (unsigned i = 0; i < count; ++i) {
    if (sges[i].length == 0) continue;
    const Data data{htobe32(sges[i].length), htobe32(sges[i].lkey), htobe64(sges[i].addr)};
    std::memcpy(at, &data, sizeof data);
    at += kOctoword;
  }
  if (at == end) return;
  const Data last{0, htobe32(kNoKey), 0};
  std::memcpy(at, &last, sizeof last);
}

std::uint16_t next_of(const WorkQueues& queues, std::uint32_t index) noexcept {
  if (!queues.linked) return static_cast<std::uint16_t>(index + 1);
  NextReceive next;
  std::memcpy(&next, receive_at(queues, index), sizeof next);
  return be16toh(next.index);
}

void set_next(WorkQueues& queues, std::uint32_t index, std::uint16_t next) noexcept {
  NextReceive segment{};
  segment.index = htobe16(next);
  std::memcpy(receive_at(queues, index), &segment, sizeof segment);
}

}  // namespace gdrperf::softnic::mlx5
