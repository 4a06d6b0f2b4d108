#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "gdrperf/base/mutex.h"
#include "objects/attributes/context.h"
#include "shared/segment/layout.h"
#include "shared/segment/regions.h"
#include "shared/segment/request.h"

namespace gdrperf::softnic {

/// The QP whose request concerns a window of its process.
struct WindowUser {
  Process& process;
  Pd& domain;
  QpShared& qp;
  std::uint32_t qpn;
};

/// A memory window: a key of its own to a part of a region, made and withdrawn
/// by requests in a send queue. It has an entry in the table of regions, whose
/// `pd` no region has: so it is no lkey, and looking up regions costs no more.
struct Mw : ibv_mw {
  std::uint32_t index;
  Mutex binding;  ///< held by ibv_bind_mw, which changes rkey
  static Mw& of(ibv_mw* mw) { return *static_cast<Mw*>(mw); }
};

/// Rights for which the region itself must be writable.
inline constexpr unsigned kRemoteWriters = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
/// In ibv_send_wr::send_flags: ibv_bind_mw posts it. Only that may bind windows
/// of type 1.
inline constexpr unsigned kTypeOneBind = 1u << 31;

/// EINVAL for an unknown type, ENOMEM for a full table, as VerbsFailure.
Mw* allocate_window(Pd& pd, ibv_mw_type type);
/// Withdraws the key, then waits until nobody uses it.
void free_window(Mw* mw);
/// Type 1: binds, or with length 0 unbinds. 0, or an errno.
int bind_window(ibv_qp* qp, Mw& mw, const ibv_mw_bind& bind);
/// True while a window is bound to this region, which then cannot change.
bool has_windows(Pd& pd, std::uint32_t region) REQUIRES(pd.windows_mutex);

/// Turns the request to bind into a SendOp. 0, or EINVAL.
int fill_bind(SendOp& op, ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info& info,
              unsigned send_flags) noexcept;

/// The same for any request with which windows are bound and withdrawn.
int take_window_request(const ibv_send_wr& request, SendOp& op) noexcept;
/// Executes such a request; under the lock of the QP's send queue.
Outcome change_window(const WindowUser& user, const SendOp& op) noexcept;

}  // namespace gdrperf::softnic
