#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

/// Commands to an mlx5's firmware, as DEVX passes them on: fields of bits, in big-endian words of 32. Facts:
/// the Linux kernel's include/linux/mlx5/mlx5_ifc.h, and NVIDIA's Programmer's Reference Manual.
namespace gdrperf::softnic::mlx5 {

/// `at`: bits from the beginning, counted from the highest bit of each word.
struct Field {
  std::uint32_t at;
  std::uint32_t width;
  /// Of a structure that begins at `bit` of another one.
  constexpr Field within(std::uint32_t bit) const { return {at + bit, width}; }
};

/// A command's input, or its output. What lies beyond its end reads as 0, and is not written.
class Words {
 public:
  Words(void* memory, std::size_t size) : bytes_(static_cast<std::uint8_t*>(memory)), size_(size) {}

  std::uint64_t get(Field field) const noexcept {
    std::uint64_t value = 0;
    for (std::uint32_t i = 0; i < field.width; ++i) value = value << 1 | bit(field.at + i);
    return value;
  }
  std::uint32_t get32(Field field) const noexcept { return static_cast<std::uint32_t>(get(field)); }
  void set(Field field, std::uint64_t value) noexcept {
    for (std::uint32_t i = field.width; i > 0; --i, value >>= 1) set_bit(field.at + i - 1, (value & 1) != 0);
  }
  /// Whole bytes, in their order.
  void get_bytes(std::uint32_t at, std::uint8_t* to, std::size_t count) const noexcept {
    for (std::size_t i = 0; i < count; ++i) to[i] = at / 8 + i < size_ ? bytes_[at / 8 + i] : std::uint8_t{0};
  }
  void set_bytes(std::uint32_t at, const std::uint8_t* from, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count && at / 8 + i < size_; ++i) bytes_[at / 8 + i] = from[i];
  }
  void clear() noexcept {
    for (std::size_t i = 0; i < size_; ++i) bytes_[i] = 0;
  }

 private:
  // Big-endian words: bits follow each other from byte to byte.
  unsigned bit(std::uint32_t at) const noexcept { return at / 8 < size_ ? bytes_[at / 8] >> (7 - at % 8) & 1u : 0u; }
  void set_bit(std::uint32_t at, bool value) noexcept {
    if (at / 8 >= size_) return;
    const auto mask = static_cast<std::uint8_t>(1u << (7 - at % 8));
    bytes_[at / 8] = static_cast<std::uint8_t>(value ? bytes_[at / 8] | mask : bytes_[at / 8] & ~mask);
  }
  std::uint8_t* bytes_;
  std::size_t size_;
};

enum Command : std::uint32_t {
  kQueryHcaCap = 0x100,
  kCreateCq = 0x400,
  kCreateQp = 0x500,
  kRst2Init = 0x502,
  kInit2Rtr = 0x503,
  kRtr2Rts = 0x504,
  kRts2Rts = 0x505,
  kQp2Err = 0x507,
  kQp2Rst = 0x50a,
  kQueryQp = 0x50b,
  kInit2Init = 0x50e,
  kQueryRoceAddress = 0x760,
  kQueryLag = 0x842,
  kCreateRmp = 0x90c,
};

enum CommandStatus : std::uint32_t {
  kCommandOk = 0x0,
  kBadOperation = 0x2,
  kBadParameter = 0x3,
  kBadResource = 0x5,
  kNoResources = 0xf,
};

// Of every command.
inline constexpr Field kOpcode{0, 16}, kOperationModifier{48, 16}, kStatus{0, 8}, kSyndrome{32, 32};
/// Puts a command's status in its output. 0, or EREMOTEIO: refused.
inline int answer(Words& out, CommandStatus status, std::uint32_t syndrome) noexcept {
  out.set(kStatus, status);
  out.set(kSyndrome, syndrome);
  return status == kCommandOk ? 0 : EREMOTEIO;
}

/// Of QP commands: the QP's number, changes that are optional, and the context.
inline constexpr Field kQpNumber{72, 24}, kOptional{128, 32};
inline constexpr std::uint32_t kQpContextAt = 192;

namespace cq {
inline constexpr std::uint32_t kContextAt = 128;
inline constexpr Field kCqeSize{8, 3}, kCollapsed{11, 1}, kOverrunIgnored{14, 1}, kDbrUmem{32, 32},
    kLogSize{99, 5}, kUarPage{104, 24}, kDbrAddress{448, 64};
inline constexpr Field kUmemOffset{640, 64}, kUmem{704, 32};
inline constexpr Field kNumber{72, 24};  ///< output
}  // namespace cq

namespace qp {
inline constexpr Field kState{0, 4}, kType{8, 8}, kPathMigration{19, 2}, kPd{40, 24}, kMtu{64, 3}, kLogMessage{67, 5},
    kLogRqSize{73, 4}, kLogRqStride{77, 3}, kNoSq{80, 1}, kLogSqSize{81, 4}, kUarPage{104, 24}, kSendDbrMode{128, 2},
    kUserIndex{136, 24}, kRemoteQpn{168, 24}, kLogReadsSent{904, 3}, kRetryCount{909, 3}, kRnrRetry{912, 3},
    kSendPsn{968, 24}, kSendCq{1000, 24}, kLogReadsServed{1160, 3}, kRemoteRead{1168, 1}, kRemoteWrite{1169, 1},
    kRemoteAtomic{1170, 1}, kMinRnrNak{1187, 5}, kReceivePsn{1192, 24}, kReceiveCq{1256, 24}, kDbrAddress{1280, 64},
    kRqType{1381, 3}, kRmp{1384, 24}, kDbrUmem{1824, 32};
inline constexpr Field kWqUmemOffset{2048, 64}, kWqUmem{2112, 32};
inline constexpr Field kNumber{72, 24};  ///< output
/// The primary address path.
inline constexpr std::uint32_t kPathAt = 192;
inline constexpr Field kPkeyIndex{16, 16}, kGrh{40, 1}, kRemoteLid{48, 16}, kAckTimeout{64, 5}, kSourceIndex{72, 8},
    kHopLimit{88, 8}, kTrafficClass{100, 8}, kServiceLevel{292, 4}, kPort{296, 8};
inline constexpr std::uint32_t kRemoteGidAt = 128;
enum RqType : std::uint32_t { kRegular = 0, kShared = 1, kNone = 3 };
/// Of kOptional.
inline constexpr std::uint32_t kChangesRead = 1u << 1, kChangesAtomic = 1u << 2, kChangesWrite = 1u << 3,
                               kChangesRnrTimer = 1u << 6;
}  // namespace qp

/// A receive memory pool: what verbs call an SRQ. Its fields begin at kContextAt, its work queue's at kWqAt.
namespace rmp {
inline constexpr std::uint32_t kContextAt = 256, kWqAt = kContextAt + 384;
inline constexpr Field kState{8, 4}, kCyclic{32, 1};
inline constexpr Field kWqType{0, 4}, kPd{72, 24}, kDbrAddress{128, 64}, kLogStride{268, 4}, kLogSize{283, 5},
    kDbrUmem{320, 32}, kUmem{352, 32}, kUmemOffset{384, 64};
inline constexpr Field kNumber{72, 24};  ///< output
enum State : std::uint32_t { kReady = 1 };
enum WqType : std::uint32_t { kLinkedList = 0, kCyclicWq = 1 };
}  // namespace rmp

namespace cap {
inline constexpr std::uint32_t kAt = 128;
enum Type : std::uint32_t { kGeneral = 0x0, kRoce = 0x4 };
inline constexpr Field kLogQpSize{136, 8}, kLogQps{155, 5}, kLogCqSize{200, 8}, kLogCqs{219, 5}, kGidTable{368, 16},
    kPortType{438, 2}, kPorts{440, 8}, kLogMessage{451, 5}, kRc{575, 1}, kSqWqeBytes{656, 16}, kRqWqeBytes{688, 16},
    kCyclicReceives{896, 1}, kLogRmps{899, 5};
inline constexpr Field kRoceLastPort{192, 16}, kRoceFirstPort{208, 16}, kRoceAddresses{240, 16};
}  // namespace cap

namespace roce {
inline constexpr Field kIndex{64, 16};
inline constexpr std::uint32_t kAddressAt = 128;
inline constexpr std::uint32_t kMacAt = 144;  ///< six bytes
inline constexpr Field kL3Type{212, 4}, kVersion{216, 8};
}  // namespace roce

}  // namespace gdrperf::softnic::mlx5
