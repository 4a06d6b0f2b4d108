#pragma once

#include <endian.h>

#include <atomic>
#include <cstdint>
#include <cstring>

/// Rings in the format of NVIDIA's mlx5 NICs. Facts: rdma-core's mlx5dv.h, the Linux kernel's
/// include/linux/mlx5, NVIDIA's Programmer's Reference Manual. All multi-byte fields are big-endian.
namespace gdrperf::softnic::mlx5 {

/// Send queues count blocks of 64 bytes, in 16 bits; a WQE has one or more, and begins with a block.
inline constexpr std::uint32_t kBlockBytes = 64;
inline constexpr std::uint32_t kMaxBlocks = 1u << 15;
inline constexpr std::uint32_t kOctoword = 16;
/// The control segment has six bits for the number of segments.
inline constexpr std::uint32_t kMaxWqeBytes = 63 * kOctoword;

enum Opcode : std::uint8_t {
  kNop = 0x00,
  kSendInvalidate = 0x01,
  kRdmaWrite = 0x08,
  kRdmaWriteImm = 0x09,
  kSend = 0x0a,
  kSendImm = 0x0b,
  kRdmaRead = 0x10,
  kAtomicCompareSwap = 0x11,
  kAtomicFetchAdd = 0x12,
  kLocalInvalidate = 0x1b,
  kDump = 0x23,  ///< reads local memory and drops it
  kUmr = 0x25,
};

/// Of the control segment's fm_ce_se.
inline constexpr std::uint8_t kSolicited = 1 << 1;
inline constexpr std::uint8_t kCompletionMask = 3 << 2;
inline constexpr std::uint8_t kCompletionAlways = 2 << 2;
inline constexpr std::uint8_t kFenceMask = 7 << 5;
inline constexpr std::uint8_t kFenceReads = 4 << 5;

/// In front of inline data, with its length.
inline constexpr std::uint32_t kInlineData = 1u << 31;
/// Ends the list of a receive's segments.
inline constexpr std::uint32_t kNoKey = 0x100;
/// Data segment: a byte count of 0 means so many.
inline constexpr std::uint64_t kZeroMeans = std::uint64_t{1} << 31;

struct Control {
  std::uint32_t opmod_index_opcode;  ///< 8, 16 and 8 bits
  std::uint32_t qpn_segments;        ///< 24 and 6 bits
  std::uint8_t signature;
  std::uint8_t stream[2];
  std::uint8_t fm_ce_se;
  std::uint32_t imm;
};
struct RemoteAddress {
  std::uint64_t address;
  std::uint32_t key;
  std::uint32_t reserved;
};
struct Atomic {
  std::uint64_t swap_add;
  std::uint64_t compare;
};
struct Data {
  std::uint32_t bytes;
  std::uint32_t key;
  std::uint64_t address;
};
/// In front of the data segments of an SRQ's WQE.
struct NextReceive {
  std::uint8_t reserved[2];
  std::uint16_t index;
  std::uint8_t rest[12];
};
static_assert(sizeof(Control) == kOctoword && sizeof(RemoteAddress) == kOctoword && sizeof(Atomic) == kOctoword &&
              sizeof(Data) == kOctoword && sizeof(NextReceive) == kOctoword);

struct Cqe {
  std::uint8_t reserved[32];
  std::uint32_t srqn_user;
  std::uint32_t imm;  ///< or the invalidated key
  std::uint8_t application[4];
  std::uint32_t bytes;
  std::uint64_t timestamp;
  std::uint32_t opcode_qpn;  ///< of a send: its opcode above the QP number
  std::uint16_t wqe_counter;
  std::uint8_t signature;
  std::uint8_t opcode_owner;  ///< opcode << 4 | solicited << 1 | owner
};
static_assert(sizeof(Cqe) == 64);
/// Bytes of `timestamp` where a CQE is an error's: of its lower half.
inline constexpr unsigned kVendorSyndromeAt = 54;
inline constexpr unsigned kSyndromeAt = 55;

enum CqeOpcode : std::uint8_t {
  kRequestDone = 0,
  kWriteImmArrived = 1,
  kSendArrived = 2,
  kSendImmArrived = 3,
  kSendInvalidateArrived = 4,
  kRequestError = 13,
  kReceiveError = 14,
  kInvalidCqe = 15,
};

/// Words of a doorbell record, at 64 bytes from one to the next: of a QP, and of a CQ.
inline constexpr unsigned kReceiveRecord = 0;
inline constexpr unsigned kSendRecord = 1;
inline constexpr unsigned kConsumerRecord = 0;
inline constexpr unsigned kArmRecord = 1;
inline constexpr std::uint32_t kRecordBytes = 64;

/// A page of doorbells: that of CQs, and two registers of two buffers each for send queues.
inline constexpr std::uint32_t kCqDoorbell = 0x20;
inline constexpr std::uint32_t kRegisterAt = 0x800;
inline constexpr std::uint32_t kRegisterStride = 0x200;
inline constexpr std::uint32_t kRegistersPerPage = 2;
inline constexpr std::uint32_t kRegisterBuffer = 0x100;

/// Doorbell records are written by the program, or a GPU, at any time.
inline std::uint32_t load_record(const std::uint32_t* record) noexcept {
  return be32toh(std::atomic_ref(*const_cast<std::uint32_t*>(record)).load(std::memory_order_acquire));
}
inline void store_record(std::uint32_t* record, std::uint32_t value) noexcept {
  std::atomic_ref(*record).store(htobe32(value), std::memory_order_release);
}

}  // namespace gdrperf::softnic::mlx5
