#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace gdrperf::verbs {

namespace detail {
template <auto Destroy>
struct Deleter {
  template <typename T>
  void operator()(T* object) const noexcept {
    Destroy(object);
  }
};
/// ibv_dealloc_td() is inline, hence no name that a type could have in common with another file.
struct ThreadDomainDeleter {
  void operator()(ibv_td* domain) const noexcept;
};
}  // namespace detail

// Move-only owners of the verbs objects. Declare them in the order of
// dependency (PD before MR before QP), so that they are destroyed in reverse.
using Pd = std::unique_ptr<ibv_pd, detail::Deleter<&ibv_dealloc_pd>>;
using ThreadDomain = std::unique_ptr<ibv_td, detail::ThreadDomainDeleter>;
using CompletionChannel = std::unique_ptr<ibv_comp_channel, detail::Deleter<&ibv_destroy_comp_channel>>;
using Cq = std::unique_ptr<ibv_cq, detail::Deleter<&ibv_destroy_cq>>;
using Srq = std::unique_ptr<ibv_srq, detail::Deleter<&ibv_destroy_srq>>;
using Mr = std::unique_ptr<ibv_mr, detail::Deleter<&ibv_dereg_mr>>;
using Qp = std::unique_ptr<ibv_qp, detail::Deleter<&ibv_destroy_qp>>;
using AddressHandle = std::unique_ptr<ibv_ah, detail::Deleter<&ibv_destroy_ah>>;

// Factories. Each throws Error(kEnvironment) with the device, the call, errno
// in words and a hint. Not thread-safe per object, as the verbs themselves.

Pd make_pd(ibv_context* context);
/// Of one thread, and `pd` together with it, whose QPs and CQs need no locks. Throw Error where the device has none.
ThreadDomain make_thread_domain(ibv_context* context);
Pd make_parent_domain(ibv_pd* pd, ibv_td* domain);
/// The channel's descriptor is made non-blocking: wait with poll(2).
CompletionChannel make_completion_channel(ibv_context* context);
/// `entries` is cut to what the device can. `channel` may be null. Throws Error where the device has no completion
/// vector of that number. `domain`: a parent domain that it belongs to; null: none.
Cq make_cq(ibv_context* context, int entries, ibv_comp_channel* channel, int vector = 0, ibv_pd* domain = nullptr);
/// Shared by QPs of `pd`, for so many receives of `sges` pieces.
Srq make_srq(ibv_pd* pd, std::uint32_t receives, int sges = 1);
/// `access` is a mask of ibv_access_flags. The hint explains memlock.
Mr register_memory(ibv_pd* pd, void* address, std::size_t bytes, int access);
/// Takes what is written to it and gives nothing. Throws Error where the device has none.
Mr make_null_mr(ibv_pd* pd);

/// Capacity of a QP.
struct QpCapacity {
  int send_wr = 1;
  int recv_wr = 1;
  int inline_bytes = 0;
  int sges = 1;  ///< pieces of a work request
};

/// A filled ibv_qp_init_attr for a QP with unsignalled sends by default.
ibv_qp_init_attr qp_attr(ibv_qp_type type, ibv_cq* send_cq, ibv_cq* recv_cq, const QpCapacity& capacity);

/// Whether a QP needs the inline size that was asked for, or may have less where the device refuses it.
enum class Inlining { kExactly, kUpTo };

/// Calls create(a copy of `attr`), which returns whether there is a QP now, until it does: with half
/// as much sent inline each time where `inlining` allows that. `attr` then says what was granted.
template <typename Create>
bool create_qp(ibv_qp_init_attr& attr, Inlining inlining, Create create) {
  constexpr std::uint32_t kLeastInline = 16;
  for (std::uint32_t wanted = attr.cap.max_inline_data;; wanted = wanted / 2 < kLeastInline ? 0 : wanted / 2) {
    ibv_qp_init_attr granted = attr;
    granted.cap.max_inline_data = wanted;
    if (create(granted)) {
      attr.cap.max_inline_data = granted.cap.max_inline_data;
      return true;
    }
    if (wanted == 0 || inlining == Inlining::kExactly) return false;
  }
}

/// create_qp() with ibv_create_qp(3).
Qp make_qp(ibv_pd* pd, ibv_qp_init_attr& attr, Inlining inlining = Inlining::kExactly);

/// Error of a failed QP creation, for those who create through rdma_cm.
[[noreturn]] void throw_qp_creation(std::string_view device, int error, const ibv_qp_init_attr& attr);

/// Address of the other QP and the path to it.
struct QpPath {
  std::uint8_t port = 1;
  std::uint8_t gid_index = 0;
  bool global = true;            ///< use the GRH (always on RoCE)
  ibv_gid remote_gid{};
  std::uint16_t remote_lid = 0;
  std::uint32_t remote_qpn = 0;
  std::uint32_t remote_psn = 0;  ///< first PSN the peer sends
  std::uint32_t local_psn = 0;   ///< first PSN we send
  int mtu_bytes = 1024;
  int service_level = 0;
  int traffic_class = 0;
  int flow_label = 0;            ///< 20 bits
  int hop_limit = 64;
  int timeout = 14;              ///< 4.096 us * 2^n
  int retry_count = 7;
  int rnr_retry = 7;             ///< 7: without limit
  int min_rnr_timer = 12;        ///< code of the time that a sender without a receive is told to wait; 12: 0.64 ms
  int max_rd_atomic = 1;         ///< reads we keep outstanding
  int max_dest_rd_atomic = 1;    ///< reads we serve at once
};

/// `path` as ibv_create_ah(3) and ibv_modify_qp(3) take it.
ibv_ah_attr address_of(const QpPath& path);

/// Of all UD QPs of gdrperf: a datagram without it is dropped.
inline constexpr std::uint32_t kQkey = 0x67647270;
/// Bytes in front of a datagram in the receive's memory.
inline constexpr std::uint64_t kGrhBytes = 40;

/// RESET -> INIT with the remote access rights of `access` (UD: with kQkey).
void to_init(ibv_qp* qp, int port, int access, int pkey_index = 0);
/// INIT -> RTR -> RTS.
void to_rts(ibv_qp* qp, const QpPath& path);
/// Where datagrams go that take `path`.
AddressHandle make_address_handle(ibv_pd* pd, const QpPath& path);

/// Makes a UD QP a member of a multicast group. leave() comes before the QP goes.
void join(ibv_qp* qp, const ibv_gid& group);
void leave(ibv_qp* qp, const ibv_gid& group) noexcept;
/// Where the datagrams of a multicast group go, in place of one QP.
inline constexpr std::uint32_t kMulticastQpn = 0xffffff;

/// 256..4096 as ibv_mtu; throws peer_error on anything else.
ibv_mtu mtu_from_bytes(int bytes);

/// "transport retry counter exceeded: the peer no longer answers": the
/// completion status in words, with what it usually means.
std::string describe(ibv_wc_status status);

}  // namespace gdrperf::verbs
