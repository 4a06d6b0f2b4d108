#include "mlx5/send_wqe.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace gdrperf::softnic::mlx5 {
namespace {

template <typename T>
T segment(const std::uint8_t* at) noexcept {
  T found;
  std::memcpy(&found, at, sizeof found);
  return found;
}

struct KnownOpcode {
  std::uint8_t wqe;
  std::uint8_t verbs;
  bool remote;  ///< has a remote address
};
constexpr KnownOpcode kOpcodes[] = {
    {kRdmaWrite, IBV_WR_RDMA_WRITE, true},
    {kRdmaWriteImm, IBV_WR_RDMA_WRITE_WITH_IMM, true},
    {kSend, IBV_WR_SEND, false},
    {kSendImm, IBV_WR_SEND_WITH_IMM, false},
    {kSendInvalidate, IBV_WR_SEND_WITH_INV, false},
    {kRdmaRead, IBV_WR_RDMA_READ, true},
    {kAtomicCompareSwap, IBV_WR_ATOMIC_CMP_AND_SWP, true},
    {kAtomicFetchAdd, IBV_WR_ATOMIC_FETCH_AND_ADD, true},
    {kLocalInvalidate, IBV_WR_LOCAL_INV, false},
    {kUmr, IBV_WR_BIND_MW, false},
};

/// By opcode: its place in kOpcodes and 1 more, or 0.
constexpr auto kPlaces = [] {
  std::array<std::uint8_t, 64> places{};
  for (std::size_t i = 0; i < std::size(kOpcodes); ++i) places[kOpcodes[i].wqe] = static_cast<std::uint8_t>(i + 1);
  return places;
}();

const KnownOpcode* known(std::uint8_t opcode) noexcept {
  return opcode < kPlaces.size() && kPlaces[opcode] != 0 ? &kOpcodes[kPlaces[opcode] - 1] : nullptr;
}

void refuse(SendWqe& wqe, ibv_wc_status status) noexcept {
  wqe.kind = SendWqe::Kind::kBad;
  wqe.status = status;
}

/// The ring's bytes, in order.
void copy_out(const std::uint8_t* ring, std::uint32_t ring_bytes, std::uint32_t at, std::uint8_t* to,
              std::uint32_t bytes) noexcept {
  const std::uint32_t first = std::min(bytes, ring_bytes - at);
  std::memcpy(to, ring + at, first);
  std::memcpy(to + first, ring, bytes - first);
}

void copy_in(std::uint8_t* ring, std::uint32_t ring_bytes, std::uint32_t at, const std::uint8_t* from,
             std::uint32_t bytes) noexcept {
  const std::uint32_t first = std::min(bytes, ring_bytes - at);
  std::memcpy(ring + at, from, first);
  std::memcpy(ring, from + first, bytes - first);
}

/// Segments from `at` on: data, or inline data. False: not of that format.
bool read_data(SendWqe& wqe, std::uint32_t at, std::uint32_t end) noexcept {
  SendOp& op = wqe.op;
  bool pointers = false;
  while (at < end) {
    const auto head = be32toh(segment<std::uint32_t>(wqe.bytes + at));
    if (op.num_sge == kMaxSge) return false;
    ibv_sge& sge = wqe.sges[op.num_sge++];
    if ((head & kInlineData) != 0) {
      const std::uint32_t length = head & ~kInlineData;
      if (pointers || is_read_like(op.opcode) || length > end - at - sizeof head) return false;
      op.flags |= IBV_SEND_INLINE;
      sge = {reinterpret_cast<std::uint64_t>(wqe.bytes + at + sizeof head), length, 0};
      at += (static_cast<std::uint32_t>(sizeof head) + length + kOctoword - 1) / kOctoword * kOctoword;
      continue;
    }
    if ((op.flags & IBV_SEND_INLINE) != 0) return false;
    pointers = true;
    const auto data = segment<Data>(wqe.bytes + at);
    // 2 GiB, which is more than the device carries in one message.
    const std::uint32_t length = head != 0 ? head : static_cast<std::uint32_t>(kZeroMeans);
    sge = {be64toh(data.address), length, be32toh(data.key)};
    at += kOctoword;
  }
  return true;
}

void read_request(SendWqe& wqe, const Control& control, const KnownOpcode& opcode, std::uint32_t end) noexcept {
  SendOp& op = wqe.op;
  op.opcode = opcode.verbs;
  // Immediate data stands there as verbs has it, a key in the order of bytes of the ring.
  op.imm = opcode.wqe == kSendInvalidate || opcode.wqe == kLocalInvalidate ? be32toh(control.imm) : control.imm;
  if (opcode.wqe == kLocalInvalidate || opcode.wqe == kUmr) {
    wqe.kind = SendWqe::Kind::kOwn;
    return;
  }
  std::uint32_t at = kOctoword;
  if (opcode.remote) {
    if (at + kOctoword > end) return refuse(wqe, IBV_WC_LOC_QP_OP_ERR);
    const auto remote = segment<RemoteAddress>(wqe.bytes + at);
    op.remote_addr = be64toh(remote.address);
    op.rkey = be32toh(remote.key);
    at += kOctoword;
  }
  if (is_atomic(op.opcode)) {
    if (at + kOctoword > end) return refuse(wqe, IBV_WC_LOC_QP_OP_ERR);
    const auto words = segment<Atomic>(wqe.bytes + at);
    const bool swaps = op.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    op.compare_add = be64toh(swaps ? words.compare : words.swap_add);
    op.swap = swaps ? be64toh(words.swap_add) : 0;
    at += kOctoword;
  }
  if (!read_data(wqe, at, end)) refuse(wqe, IBV_WC_LOC_QP_OP_ERR);
}

}  // namespace

void read_send_wqe(const std::uint8_t* ring, std::uint32_t blocks, std::uint16_t index, std::uint32_t posted,
                   std::uint32_t qpn, SendWqe& wqe) noexcept {
  const std::uint32_t ring_bytes = blocks * kBlockBytes;
  const std::uint32_t at = (index & (blocks - 1)) * kBlockBytes;
  wqe.kind = SendWqe::Kind::kRequest;
  wqe.status = IBV_WC_SUCCESS;
  wqe.blocks = 0;
  wqe.op = {};
  wqe.op.sges = wqe.sges;
  std::memcpy(wqe.bytes, ring + at, kBlockBytes);
  const auto control = segment<Control>(wqe.bytes);
  const std::uint32_t head = be32toh(control.opmod_index_opcode);
  const std::uint32_t tail = be32toh(control.qpn_segments);
  const auto opcode = static_cast<std::uint8_t>(head & 0xff);
  const std::uint32_t bytes = (tail & 63) * kOctoword;
  wqe.op.wr_id = completion_word(index, opcode);
  wqe.op.opcode = IBV_WR_SEND;
  const std::uint32_t length = (bytes + kBlockBytes - 1) / kBlockBytes;
  const bool placed =
      bytes > 0 && length <= posted && length <= blocks && (head >> 8 & 0xffff) == index && tail >> 8 == qpn;
  if (!placed) return refuse(wqe, IBV_WC_LOC_QP_OP_ERR);
  wqe.blocks = length;
  if (length > 1) {
    const std::uint32_t rest = (at + kBlockBytes) & (ring_bytes - 1);
    copy_out(ring, ring_bytes, rest, wqe.bytes + kBlockBytes, bytes - kBlockBytes);
  }
  std::uint8_t flags = 0;
  if ((control.fm_ce_se & kCompletionMask) == kCompletionAlways) flags |= IBV_SEND_SIGNALED;
  if ((control.fm_ce_se & kSolicited) != 0) flags |= IBV_SEND_SOLICITED;
  if ((control.fm_ce_se & kFenceMask) != 0) flags |= IBV_SEND_FENCE;
  wqe.op.flags = flags;
  if (opcode == kNop || opcode == kDump) {
    wqe.kind = SendWqe::Kind::kNothing;
    return;
  }
  const KnownOpcode* const found = known(opcode);
  if (found == nullptr) return refuse(wqe, IBV_WC_LOC_QP_OP_ERR);
  read_request(wqe, control, *found, bytes);
}

namespace {

std::uint32_t data_bytes(const SendOp& op) noexcept {
  if ((op.flags & IBV_SEND_INLINE) == 0) {
    std::uint32_t segments = 0;
    for (unsigned i = 0; i < op.num_sge; ++i) segments += op.sges[i].length > 0 ? 1 : 0;
    return segments * kOctoword;
  }
  std::uint32_t length = 0;
  for (unsigned i = 0; i < op.num_sge; ++i) length += op.sges[i].length;
  return length == 0 ? 0 : (4 + length + kOctoword - 1) / kOctoword * kOctoword;
}

std::uint32_t wqe_bytes(const SendOp& op) noexcept {
  if (is_local(op.opcode)) return kOctoword;
  const bool remote =
      is_read_like(op.opcode) || op.opcode == IBV_WR_RDMA_WRITE || op.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  return kOctoword * (1 + (remote ? 1 : 0) + (is_atomic(op.opcode) ? 1 : 0)) + data_bytes(op);
}

template <typename T>
std::uint8_t* put_segment(std::uint8_t* at, const T& value) noexcept {
  std::memcpy(at, &value, sizeof value);
  return at + sizeof value;
}

void put_data(std::uint8_t* at, const SendOp& op) noexcept {
  if ((op.flags & IBV_SEND_INLINE) == 0) {
    for (unsigned i = 0; i < op.num_sge; ++i) {
      const ibv_sge& sge = op.sges[i];
      if (sge.length > 0) at = put_segment(at, Data{htobe32(sge.length), htobe32(sge.lkey), htobe64(sge.addr)});
    }
    return;
  }
  std::uint32_t length = 0;
  std::uint8_t* to = at + sizeof length;
  for (unsigned i = 0; i < op.num_sge; ++i) {
    std::memcpy(to + length, reinterpret_cast<const void*>(op.sges[i].addr), op.sges[i].length);
    length += op.sges[i].length;
  }
  if (length > 0) put_segment(at, htobe32(kInlineData | length));
}

}  // namespace

std::uint32_t blocks_of(const SendOp& op) noexcept { return (wqe_bytes(op) + kBlockBytes - 1) / kBlockBytes; }

void write_send_wqe(std::uint8_t* ring, std::uint32_t blocks, std::uint16_t index, std::uint32_t qpn, const SendOp& op,
                    bool always) noexcept {
  alignas(16) std::uint8_t wqe[kMaxWqeBytes + kBlockBytes];
  const std::uint32_t bytes = wqe_bytes(op);
  std::uint8_t opcode = kNop;
  for (const KnownOpcode& it : kOpcodes) {
    if (it.verbs == op.opcode) opcode = it.wqe;
  }
  Control control{};
  control.opmod_index_opcode = htobe32(static_cast<std::uint32_t>(index) << 8 | opcode);
  control.qpn_segments = htobe32(qpn << 8 | bytes / kOctoword);
  if (always || (op.flags & IBV_SEND_SIGNALED) != 0) control.fm_ce_se |= kCompletionAlways;
  if ((op.flags & IBV_SEND_SOLICITED) != 0) control.fm_ce_se |= kSolicited;
  if ((op.flags & IBV_SEND_FENCE) != 0) control.fm_ce_se |= kFenceReads;
  control.imm = opcode == kSendInvalidate || opcode == kLocalInvalidate ? htobe32(op.imm) : op.imm;
  std::uint8_t* at = put_segment(wqe, control);
  if (!is_local(op.opcode)) {
    if (!is_send(op.opcode)) at = put_segment(at, RemoteAddress{htobe64(op.remote_addr), htobe32(op.rkey), 0});
    if (op.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) at = put_segment(at, Atomic{htobe64(op.swap), htobe64(op.compare_add)});
    if (op.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) at = put_segment(at, Atomic{htobe64(op.compare_add), 0});
    put_data(at, op);
  }
  const std::uint32_t ring_bytes = blocks * kBlockBytes;
  copy_in(ring, ring_bytes, (index & (blocks - 1)) * kBlockBytes, wqe, bytes);
}

}  // namespace gdrperf::softnic::mlx5
