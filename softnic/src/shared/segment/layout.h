#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

/// Layout of the shared memory of a process ("segment"): the tables that a
/// peer needs in order to execute an operation on this process by itself.
/// Every process owns one segment and maps those of its peers. Only plain
/// integers and lock-free atomics, no pointers: offsets count from the
/// segment's start.
///
/// Peers write here, so nobody believes what stands here: neither the owner,
/// who keeps what he needs to know in memory of his own, nor a peer, for whom
/// each offset and index is bounded where it is used, after one reading.
namespace gdrperf::softnic {

/// Part of every socket name: builds with another layout do not meet.
inline constexpr std::uint32_t kLayoutVersion = 16;
inline constexpr std::uint64_t kSegmentMagic = 0x63696e74666f73ull;

inline constexpr unsigned kQpIndexBits = 12;
inline constexpr std::uint32_t kMaxQps = 1u << kQpIndexBits;
inline constexpr std::uint32_t kMaxCqs = 4096;
inline constexpr std::uint32_t kMaxMrs = 1u << 16;
inline constexpr std::uint32_t kMaxXrcSrqs = kMaxQps;
inline constexpr std::uint32_t kMaxLanes = 4096;
inline constexpr std::uint32_t kMaxMemberships = 4096;
inline constexpr std::uint32_t kMaxDevicesShared = 64;
inline constexpr std::uint32_t kGidsPerPort = 4;
/// Sparse: only touched pages cost memory.
inline constexpr std::uint64_t kSegmentBytes = 8ull << 30;
/// Of the memfd with moved pages, sparse as well: the page at address a lies at
/// offset a modulo this.
inline constexpr std::uint64_t kWindowBytes = 1ull << 38;

/// A QP number names its process (the block, unique on the host while the
/// process lives) and the entry in that process' table.
constexpr std::uint32_t qpn_block(std::uint32_t qpn) { return qpn >> kQpIndexBits; }
constexpr std::uint32_t qpn_index(std::uint32_t qpn) { return qpn & (kMaxQps - 1); }
constexpr std::uint32_t make_qpn(std::uint32_t block, std::uint32_t index) {
  return block << kQpIndexBits | index;
}

/// What CPUs take from each other as one: lines on x86, on Arm 128 bytes in some CPUs.
#if defined(__aarch64__)
inline constexpr std::size_t kLineBytes = 128;
#else
inline constexpr std::size_t kLineBytes = 64;
#endif

/// A QP as its peer sees it.
struct alignas(kLineBytes) QpShared {
  /// generation << 8 | ibv_qp_state. Any change to the fields of this line
  /// comes with a new generation, so a peer that finds the epoch it has
  /// checked before needs no other check.
  std::atomic<std::uint64_t> epoch;
  // Atomic, because peers read them while they change, and see by the epoch that they did.
  std::atomic<std::uint32_t> qpn;
  std::atomic<std::uint32_t> dest_qpn;
  std::atomic<std::uint64_t> dest_process;  ///< SegmentHeader::process_id of the QP's peer
  std::atomic<std::uint32_t> pd;
  std::atomic<std::uint32_t> access;  ///< qp_access_flags
  std::atomic<std::uint32_t> recv_cq;  ///< index into Segment::cqs
  std::atomic<std::uint16_t> device;
  std::atomic<std::uint8_t> sgid_index;
  std::atomic<std::uint8_t> min_rnr_timer;
  std::atomic<std::uint64_t> recv_ring;  ///< RingPlace of the RecvRing (own or the SRQ's)
  std::atomic<std::uint32_t> recv_pd;    ///< that of the SRQ where there is one
  std::atomic<std::uint8_t> max_dest_rd_atomic;
  std::atomic<std::uint8_t> port_up;
  std::atomic<std::uint8_t> uses_srq;
  std::atomic<std::uint8_t> type;  ///< ibv_qp_type
  std::atomic<std::uint32_t> qkey;
  std::atomic<std::uint32_t> xrcd;  ///< XRC_RECV: number of its domain, which no PD has

  /// Odd while the peer executes an operation on this QP: the owner changes
  /// the epoch, then waits for this to move on, before it frees anything.
  alignas(kLineBytes) std::atomic<std::uint64_t> turns;
  /// Link model: when the latest message of the peer was due (an Instant).
  std::atomic<std::uint64_t> arrival_due;
};

/// An SRQ that requests name (XRC).
struct alignas(64) XrcSrqShared {
  std::atomic<std::uint32_t> number;  ///< 0: none. Built as a QP's
  std::atomic<std::uint32_t> xrcd;
  std::atomic<std::uint32_t> pd;
  std::atomic<std::uint32_t> recv_cq;
  std::atomic<std::uint64_t> ring;  ///< RingPlace of its RecvRing
};

/// Somebody who acts on this process' QPs without being connected to one (UD).
struct alignas(kLineBytes) LaneShared {
  std::atomic<std::uint64_t> holder;  ///< SegmentHeader::process_id of his, or 0: free
  std::atomic<std::uint64_t> turns;   ///< odd while he acts on a QP
  std::atomic<std::uint32_t> qp;      ///< and its index
};

/// A UD QP that takes what is sent to a multicast group. Read while it changes, it is another
/// group's, and a datagram more or less.
struct MemberShared {
  std::atomic<std::uint32_t> qp;  ///< index into Segment::qps; 0: none
  std::atomic<std::uint64_t> gid[2];
};

struct alignas(kLineBytes) CqShared {
  std::atomic<std::uint64_t> ring;  ///< RingPlace of the CqRing
  std::atomic<std::uint32_t> has_channel;
  std::atomic<std::uint32_t> overrun;
  std::uint32_t channel;  ///< number of the completion channel in its process
  /// Not 0: completions say when they were written.
  std::atomic<std::uint32_t> stamps;
  std::atomic<std::uint64_t> notice;  ///< see Notice
};

/// In MrShared::access: memory of a GPU, see Segment::gpu_regions.
inline constexpr std::uint32_t kGpuMemory = 1u << 31;
/// In MrShared::access: memory that only the program's own mapping leads to. When the
/// program unmaps it, it is gone; so the kernel copies, which gives an error then and no signal.
inline constexpr std::uint32_t kUnpinned = 1u << 30;

struct alignas(64) MrShared {
  std::atomic<std::uint32_t> key;  ///< lkey and rkey; 0 while not valid
  std::uint32_t pd;
  std::uint32_t access;
  /// Windows of type 2: the QP they belong to. 0: any of the domain.
  std::uint32_t qpn;
  std::uint64_t iova;
  std::uint64_t length;
  std::uint64_t addr;
  /// Addresses whose pages lie in the process' window (empty: none).
  std::uint64_t moved_begin;
  std::uint64_t moved_end;
  std::uint32_t window_pd;  ///< windows: their domain; `pd` is kWindowDomain
  std::uint32_t region;     ///< windows: index of what they are bound to
};
static_assert(sizeof(MrShared) == 64);

/// The regions of a process: as it knows them, and as its peers see them. Of a
/// peer's only the latter is to be had, and is both.
struct Regions {
  const MrShared* known = nullptr;
  MrShared* published = nullptr;

  std::uint32_t index_of(const MrShared& region) const noexcept { return static_cast<std::uint32_t>(&region - known); }
};

/// GPU memory that a process has registered.
enum class GpuMemory : std::uint32_t {
  kNone,
  kShared,  ///< other processes can open all of it
  kOwn,     ///< some of it no other process can open
};

inline bool in_gpu(const MrShared& region) noexcept { return (region.access & kGpuMemory) != 0; }
/// Not to be read and written like any memory.
inline bool needs_care(const MrShared& region) noexcept { return (region.access & (kGpuMemory | kUnpinned)) != 0; }

/// Access of another process to a region in GPU memory.
enum class GpuExport : std::uint32_t {
  kNone,        ///< not at all
  kIpc,         ///< by CUDA's handle of the allocation it is in
  kDescriptor,  ///< by a descriptor of that, which the owner holds open
};
struct GpuRegion {
  std::uint64_t base;   ///< where the allocation begins, in the owner's addresses
  std::uint64_t bytes;  ///< of it
  std::uint8_t uuid[16];
  std::uint8_t handle[64];  ///< kDescriptor: a number that is never used again
  GpuExport exported;
  std::int32_t descriptor;
};

struct SegmentHeader {
  std::atomic<std::uint64_t> magic;  ///< written last
  std::uint64_t process_id;          ///< random
  std::int64_t pid;
  /// The owner calls membarrier before it trusts `turns`.
  std::uint32_t owner_barrier;
  std::uint32_t device_count;
  std::uint64_t window_bytes;  ///< kWindowBytes, or 0 for a process without moved pages
  union ibv_gid gids[kMaxDevicesShared][kGidsPerPort];
  char port_names[kMaxDevicesShared][64];
  std::atomic<std::uint8_t> modelled[kMaxDevicesShared];  ///< the device has a link model
  /// One atomic operation at a time on memory that cannot be mapped: the process
  /// that is at it, or 0. The owner opens it when it sees that process hang up.
  alignas(kLineBytes) std::atomic<std::uint64_t> atomic_lock;
  std::atomic<std::uint32_t> lanes_used;  ///< no lane from here on was ever taken
  std::atomic<std::uint32_t> members_used;  ///< the same for `members`
  std::atomic<GpuMemory> gpu_memory;        ///< registered by the owner
};

struct Segment {
  alignas(4096) SegmentHeader header;
  alignas(4096) QpShared qps[kMaxQps];
  alignas(4096) CqShared cqs[kMaxCqs];
  alignas(4096) MrShared mrs[kMaxMrs];
  alignas(4096) GpuRegion gpu_regions[kMaxMrs];
  alignas(4096) LaneShared lanes[kMaxLanes];
  alignas(4096) XrcSrqShared xrc_srqs[kMaxXrcSrqs];
  alignas(4096) MemberShared members[kMaxMemberships];

  template <typename T>
  T* at(std::uint64_t offset) noexcept {
    return reinterpret_cast<T*>(reinterpret_cast<std::uint8_t*>(this) + offset);
  }
};

constexpr ibv_qp_state epoch_state(std::uint64_t epoch) {
  return static_cast<ibv_qp_state>(epoch & 7);
}
constexpr std::uint64_t next_epoch(std::uint64_t epoch, ibv_qp_state state) {
  return ((epoch >> 8) + 1) << 8 | static_cast<std::uint64_t>(state);
}

/// The GIDs of a port, in table order. Only ports with an IPv6 address of their own have the last one.
struct GidKind {
  ibv_gid_type type;
  bool ipv4;
};
inline constexpr GidKind kGidKinds[kGidsPerPort] = {{IBV_GID_TYPE_ROCE_V1, false},
                                                    {IBV_GID_TYPE_ROCE_V2, false},
                                                    {IBV_GID_TYPE_ROCE_V2, true},
                                                    {IBV_GID_TYPE_ROCE_V2, false}};
inline constexpr std::uint32_t kIpv6Entry = 3;

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace gdrperf::softnic
