#include "mlx5/rings.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "device/device.h"
#include "mlx5/cqe.h"

namespace gdrperf::softnic::mlx5 {
namespace {

/// What rdma-core's provider reserves in front of an RC request's data: control, and the largest of
/// remote address and atomic, or a memory key's change.
constexpr std::uint32_t kRequestHead = 192;
constexpr std::uint32_t kInlineHead = 4;
/// Control and remote address, in front of inline data.
constexpr std::uint32_t kWriteHead = 2 * kSegmentBytes;

std::uint32_t rounded(std::uint32_t bytes, std::uint32_t to) { return (bytes + to - 1) / to * to; }

std::uint32_t wqe_bytes_of(const ibv_qp_cap& cap) {
  const std::uint32_t inlined = rounded(cap.max_inline_data + kInlineHead, kSegmentBytes);
  return rounded(kRequestHead + std::max(cap.max_send_sge * kSegmentBytes, inlined), kBlockBytes);
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
  cap.max_send_sge = std::clamp((bytes - kRequestHead) / kSegmentBytes, cap.max_send_sge, kMaxSge);
  cap.max_inline_data = std::max(cap.max_inline_data, std::min(bytes, kMaxWqeBytes) - kWriteHead - kInlineHead);
  if (with_receives && cap.max_recv_wr > 0) {
    layout.receives = std::bit_ceil(cap.max_recv_wr);
    layout.receive_bytes = std::bit_ceil(std::max(cap.max_recv_sge, 1u) * kSegmentBytes);
    cap.max_recv_wr = layout.receives;
    cap.max_recv_sge = layout.receive_bytes / kSegmentBytes;
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
  layout.receive_bytes = std::bit_ceil((1 + std::max(max_sge, 1u)) * kSegmentBytes);
  auto memory = std::make_unique<Buffer>(std::size_t{layout.receives} * layout.receive_bytes);
  layout.receive = memory->data();
  auto queues = std::make_unique<WorkQueues>(layout, std::make_unique<Record>(pages), Pages::Register{});
  queues->memory = std::move(memory);
  for (std::uint32_t i = 0; i < layout.receives; ++i) set_next(*queues, i, static_cast<std::uint16_t>((i + 1) & (layout.receives - 1)));
  queues->receive_tail = static_cast<std::uint16_t>(layout.receives - 1);
  return queues;
}

CompletionRing::CompletionRing(Pages& pages, unsigned ring_shift)
    : memory(std::make_unique<Buffer>(sizeof(Cqe) << ring_shift)), cqes(reinterpret_cast<Cqe*>(memory->data())),
      record(std::make_unique<Record>(pages)), page(pages.first_page()), shift(ring_shift) {
  clear_cqes(cqes, 1u << shift);
}

CompletionRing::CompletionRing(const Placed& placed)
    : cqes(placed.cqes), record(std::make_unique<Record>(placed.record)), page(placed.page), shift(placed.shift),
      overrun_ignored(placed.overrun_ignored), one_cqe(placed.one_cqe) {}

void WorkQueues::restart() noexcept {
  sent = received = next_receive = 0;
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

unsigned read_receive(const WorkQueues& queues, std::uint32_t index, bool of_srq, ibv_sge* sges, unsigned most) noexcept {
  const std::uint8_t* at = receive_at(queues, index) + (of_srq ? kSegmentBytes : 0);
  const std::uint8_t* const end = receive_at(queues, index) + queues.layout.receive_bytes;
  unsigned count = 0;
  for (; at < end && count < most; at += kSegmentBytes) {
    Data data;
    std::memcpy(&data, at, sizeof data);
    const std::uint32_t key = be32toh(data.key);
    const std::uint32_t bytes = be32toh(data.bytes);
    if (key == kNoKey && bytes == 0) break;
    sges[count++] = {be64toh(data.address), bytes, key};
  }
  return count;
}

void write_receive(WorkQueues& queues, std::uint32_t index, bool of_srq, const ibv_sge* sges, unsigned count) noexcept {
  std::uint8_t* at = receive_at(queues, index) + (of_srq ? kSegmentBytes : 0);
  const std::uint8_t* const end = receive_at(queues, index) + queues.layout.receive_bytes;
  for (unsigned i = 0; i < count; ++i) {
    if (sges[i].length == 0) continue;
    const Data data{htobe32(sges[i].length), htobe32(sges[i].lkey), htobe64(sges[i].addr)};
    std::memcpy(at, &data, sizeof data);
    at += kSegmentBytes;
  }
  if (at == end) return;
  const Data last{0, htobe32(kNoKey), 0};
  std::memcpy(at, &last, sizeof last);
}

std::uint16_t next_of(const WorkQueues& queues, std::uint32_t index) noexcept {
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
