#pragma once

#include <infiniband/verbs.h>

#include <bit>
#include <cstdint>
#include <cstring>

/// Frames between two processes on different hosts over a TCP
/// connection, of which each pair of connected QPs has one. Integers are
/// little-endian. Nothing of it is believed by whom it reaches.
namespace gdrperf::softnic {

static_assert(std::endian::native == std::endian::little, "frames travel as they lie in memory");

/// Another one does not meet this one.
inline constexpr std::uint32_t kTcpVersion = 2;
inline constexpr char kTcpMagic[8] = {'s', 'o', 'f', 't', 'n', 'i', 'c', '\n'};
inline constexpr std::size_t kProofBytes = 32;
inline constexpr std::size_t kNonceBytes = 16;

/// Purpose of a connection, where no QP has it: messages of rdma_cm. `to_qpn` is
/// then port space << 16 | port, and `to` the address.
inline constexpr std::uint8_t kTcpRdmaCm = 0x40;

/// First, from the end that connects. `magic`, `version` and `bytes` are the same
/// in all versions.
struct TcpHello {
  char magic[8];
  std::uint32_t version;
  std::uint32_t bytes;  ///< of this hello
  std::uint32_t from_qpn;
  std::uint32_t to_qpn;
  ibv_gid from;
  ibv_gid to;
  std::uint8_t nonce[kNonceBytes];
  std::uint8_t type;  ///< ibv_qp_type, or kTcpRdmaCm
  std::uint8_t reserved[7];
};
static_assert(sizeof(TcpHello) == 80);

enum class TcpRefusal : std::uint32_t {
  kNone,
  kVersion,   ///< it has another one
  kNobody,    ///< no process has that QP number
  kGid,       ///< no device of it has that address and TCP
  kSecret,    ///< the proof was wrong
  kNoSecret,  ///< it has none itself
};

/// The answer to a hello, with a nonce of its own; and to the proof, with its own proof.
struct TcpAnswer {
  char magic[8];
  std::uint32_t version;
  std::uint32_t refusal;
  std::uint8_t nonce[kNonceBytes];
  std::uint8_t proof[kProofBytes];
};
static_assert(sizeof(TcpAnswer) == 64);

struct TcpProof {
  std::uint8_t proof[kProofBytes];
};

/// From then on both ends send frames.
enum class FrameKind : std::uint8_t {
  kRequest = 1,  ///< `bytes` of data follow, unless it reads
  kAck,          ///< nothing but `acked`
  kData,         ///< what the READ or atomic `count` read; `bytes` follow
  kNoReceive,    ///< request `count` waits for a receive; the sender may wait or give up
  kNotReady,     ///< it waits for the QP to be ready
  kFailed,       ///< request `count` ended with `status`; none behind it is executed
  kLeft,         ///< the QP is no more, or begins anew; its process has not died
  kDatagram = 16,  ///< of UD, on connections of their own: to QP `count`, from QP `address`, with the Q_Key `rkey`
};

struct Frame {
  FrameKind kind;
  std::uint8_t opcode;     ///< ibv_wr_opcode
  std::uint8_t solicited;
  std::uint8_t status;     ///< kFailed: ibv_wc_status; kNoReceive: RNR timer
  std::uint32_t count;     ///< requests are numbered, with gaps
  std::uint32_t acked;     ///< all of the receiver's requests up to this one are done
  std::uint32_t imm;
  std::uint32_t rkey;
  std::uint32_t total;     ///< of the message; fewer bytes travel where a fault has taken some
  std::uint64_t bytes;
  std::uint64_t address;
  std::uint64_t compare_add;
  std::uint64_t swap;
};
static_assert(sizeof(Frame) == 56);

}  // namespace gdrperf::softnic
