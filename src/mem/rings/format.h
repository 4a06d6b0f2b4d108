#pragma once

// Work requests, completions and doorbells of mlx5 devices, as NVIDIA's "Adapters Programmer's Reference Manual" and
// rdma-core's mlx5dv.h describe them. Plain inline functions for the CPU and for GPU kernels: nothing is allocated or
// locked here, and nothing is known of verbs.

#include <cstdint>

#ifdef __CUDACC__
#define GDRPERF_BOTH __host__ __device__ __forceinline__
#else
#define GDRPERF_BOTH inline
#endif

namespace gdrperf::mem::rings {

/// A basic block of a send queue: no request here is larger.
constexpr std::uint32_t kBlockBytes = 64;
constexpr std::uint32_t kBlockWords = kBlockBytes / 4;

// Indices into a QP's doorbell record.
constexpr std::uint32_t kReceiveRecord = 0;
constexpr std::uint32_t kSendRecord = 1;

enum class Opcode : std::uint8_t {
  kNop = 0x00,
  kWrite = 0x08,
  kWriteImmediate = 0x09,
  kSend = 0x0a,
  kSendImmediate = 0x0b,
  kRead = 0x10,
  kCompareSwap = 0x11,
  kFetchAdd = 0x12,
};

/// What a completion is of: the upper four bits of its last byte.
enum class Completed : std::uint8_t {
  kRequest = 0,
  kWriteImmediate = 1,
  kSend = 2,
  kSendImmediate = 3,
  kRequestError = 13,
  kReceiveError = 14,
  kInvalid = 15,
};

/// One message; addresses as the device knows them.
struct Message {
  Opcode opcode = Opcode::kNop;
  bool signalled = false;
  bool fenced = false;  ///< waits for the reads and atomics in front of it
  std::uint32_t immediate = 0;
  std::uint64_t remote = 0;
  std::uint32_t rkey = 0;
  std::uint64_t local = 0;
  std::uint32_t lkey = 0;
  std::uint32_t bytes = 0;
  std::uint64_t operand = 0;  ///< of an atomic: what is added, or put in
  std::uint64_t compare = 0;
};

GDRPERF_BOTH std::uint32_t big32(std::uint32_t value) {
#ifdef __CUDA_ARCH__
  return __byte_perm(value, 0, 0x0123);
#else
  return __builtin_bswap32(value);
#endif
}
GDRPERF_BOTH std::uint32_t high_big32(std::uint64_t value) { return big32(static_cast<std::uint32_t>(value >> 32)); }
GDRPERF_BOTH std::uint32_t low_big32(std::uint64_t value) { return big32(static_cast<std::uint32_t>(value)); }

GDRPERF_BOTH bool has_remote(Opcode opcode) {
  return opcode != Opcode::kNop && opcode != Opcode::kSend && opcode != Opcode::kSendImmediate;
}
GDRPERF_BOTH bool is_atomic(Opcode opcode) { return opcode == Opcode::kCompareSwap || opcode == Opcode::kFetchAdd; }

/// Whether a request names memory here. A piece of no bytes would be one of 2 GiB.
GDRPERF_BOTH bool has_piece(const Message& message) { return message.opcode != Opcode::kNop && message.bytes != 0; }

/// Sixteen-byte segments of a request.
GDRPERF_BOTH std::uint32_t segments_of(const Message& message) {
  return 1 + (has_remote(message.opcode) ? 1u : 0u) + (is_atomic(message.opcode) ? 1u : 0u) +
         (has_piece(message) ? 1u : 0u);
}

/// The control segment's first two words, as they lie in memory.
struct Control {
  std::uint32_t words[2];
};
GDRPERF_BOTH Control control_of(Opcode opcode, std::uint64_t index, std::uint32_t qpn, std::uint32_t segments) {
  const std::uint32_t place = static_cast<std::uint32_t>(index & 0xffff);
  return {{big32(place << 8 | static_cast<std::uint32_t>(opcode)), big32(qpn << 8 | segments)}};
}

GDRPERF_BOTH std::uint32_t control_flags(const Message& message) {
  return (message.signalled ? 0x08u : 0u) | (message.fenced ? 0x80u : 0u);
}

/// Puts the segments that all requests begin with into `words`, which are zero.
GDRPERF_BOTH void begin_request(std::uint32_t* words, const Message& message, std::uint64_t index, std::uint32_t qpn,
                                std::uint32_t segments) {
  const Control control = control_of(message.opcode, index, qpn, segments);
  words[0] = control.words[0];
  words[1] = control.words[1];
  words[2] = big32(control_flags(message));
  words[3] = big32(message.immediate);
  if (!has_remote(message.opcode)) return;
  words[4] = high_big32(message.remote);
  words[5] = low_big32(message.remote);
  words[6] = big32(message.rkey);
  if (!is_atomic(message.opcode)) return;
  words[8] = high_big32(message.operand);
  words[9] = low_big32(message.operand);
  words[10] = high_big32(message.compare);
  words[11] = low_big32(message.compare);
}

/// A piece of memory, of a request or a receive: four words.
GDRPERF_BOTH void put_piece(std::uint32_t* words, std::uint32_t bytes, std::uint32_t key, std::uint64_t address) {
  words[0] = big32(bytes);
  words[1] = big32(key);
  words[2] = high_big32(address);
  words[3] = low_big32(address);
}

/// The request as kBlockWords words that were zero; its number of segments.
GDRPERF_BOTH std::uint32_t encode(std::uint32_t* words, const Message& message, std::uint64_t index,
                                  std::uint32_t qpn) {
  const std::uint32_t segments = segments_of(message);
  begin_request(words, message, index, qpn, segments);
  // At places that the compiler knows: a GPU has no registers that an index reaches.
  if (!has_piece(message)) return segments;
  if (is_atomic(message.opcode)) {
    put_piece(words + 12, message.bytes, message.lkey, message.local);
  } else if (has_remote(message.opcode)) {
    put_piece(words + 8, message.bytes, message.lkey, message.local);
  } else {
    put_piece(words + 4, message.bytes, message.lkey, message.local);
  }
  return segments;
}

/// Key of the piece that ends a receive of fewer pieces than fit.
constexpr std::uint32_t kNoKey = 0x100;

/// What rings for all requests in front of `end`: the last one's control, of whatever kind it is.
GDRPERF_BOTH std::uint64_t doorbell_of(std::uint64_t end, std::uint32_t qpn, const Message& last) {
  const Control control = control_of(last.opcode, end - 1, qpn, segments_of(last));
  return static_cast<std::uint64_t>(control.words[1]) << 32 | control.words[0];
}
/// What a doorbell record holds for `count` requests or receives in all.
GDRPERF_BOTH std::uint32_t record_of(std::uint64_t count) { return big32(static_cast<std::uint32_t>(count & 0xffff)); }
/// What a CQ's doorbell record holds after `taken` completions.
GDRPERF_BOTH std::uint32_t cq_record_of(std::uint64_t taken) {
  return big32(static_cast<std::uint32_t>(taken & 0xffffff));
}

// A completion is 64 bytes, which end those of 128. Its last word: place of the request (16 bits), a signature, owner
// and kind.
constexpr std::uint32_t kCompletionBytes = 64;
constexpr std::uint32_t kLastWord = 60;
constexpr std::uint32_t kVendorSyndromeAt = 54;
constexpr std::uint32_t kSyndromeAt = 55;

/// Where completion `taken` lies in a ring of `mask` + 1 entries of 1 << `shift` bytes.
GDRPERF_BOTH std::uint64_t completion_offset(std::uint64_t taken, std::uint32_t mask, std::uint32_t shift) {
  return ((taken & mask) << shift) + (std::uint64_t{1} << shift) - kCompletionBytes;
}
GDRPERF_BOTH Completed kind_of(std::uint32_t last_word) { return static_cast<Completed>(last_word >> 28); }
/// Whether the device has written completion `taken`: the owner bit changes with each lap of the ring.
GDRPERF_BOTH bool is_there(std::uint32_t last_word, std::uint64_t taken, std::uint32_t mask) {
  const std::uint32_t lap = (taken & (std::uint64_t{mask} + 1)) != 0 ? 1u : 0u;
  return kind_of(last_word) != Completed::kInvalid && (last_word >> 24 & 1) == lap;
}
/// Requests that have completed, of which `before` had, with a completion of the request at 16-bit `place`.
GDRPERF_BOTH std::uint64_t completed_by(std::uint32_t last_word, std::uint64_t before) {
  const std::uint32_t place = (last_word & 0xff) << 8 | (last_word >> 8 & 0xff);
  return before + ((place + 1 - before) & 0xffff);
}

}  // namespace gdrperf::mem::rings
