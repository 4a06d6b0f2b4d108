#include "objects/memory/mw.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "objects/queues/failure.h"
#include "shared/segment/completion.h"
#include "shared/segment/request.h"

namespace gdrperf::softnic {
namespace {

constexpr unsigned kWindowAccess = IBV_ACCESS_LOCAL_WRITE | kRemoteWriters | IBV_ACCESS_REMOTE_READ |
                                   IBV_ACCESS_ZERO_BASED;
/// Time that a peer may take to leave; longer than any copy.
constexpr std::uint64_t kLeaveLimitNs = 1'000'000'000;

MrShared& known_of(const Mw& mw) { return Context::of(mw.context).process.known_region(mw.index); }

/// The key of a window while it is bound: whoever acts on its QP may have withdrawn it in
/// what peers see.
std::uint32_t bound_key(Process& process, std::uint32_t index) {
  const std::uint32_t key = process.known_region(index).key.load();
  return process.regions().published[index].key.load() == key ? key : 0;
}

bool is_bound(Process& process, std::uint32_t index) { return bound_key(process, index) != 0; }

}  // namespace

Mw* allocate_window(Pd& pd, ibv_mw_type type) {
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) throw VerbsFailure{EINVAL};
  Process& process = Context::of(pd.context).process;
  auto mw = std::make_unique<Mw>();
  const MutexLock guard(pd.windows_mutex);
  pd.windows.reserve(pd.windows.size() + 1);
  mw->index = process.mr_indices.take();
  if (mw->index == 0) throw VerbsFailure{ENOMEM};
  mw->context = pd.context;
  mw->pd = &pd;
  mw->type = type;
  mw->handle = mw->index;
  mw->rkey = mw->index << 8 | process.next_key.fetch_add(1);
  MrShared& known = process.known_region(mw->index);
  known.pd = kWindowDomain;
  known.window_pd = pd.number;
  known.qpn = 0;
  ++pd.users;
  pd.windows.push_back(mw.get());
  return mw.release();
}

void free_window(Mw* mw) {
  Process& process = Context::of(mw->context).process;
  Pd& pd = *static_cast<Pd*>(mw->pd);
  MrShared& known = known_of(*mw);
  {
    const MutexLock guard(pd.windows_mutex);
    pd.windows.erase(std::remove(pd.windows.begin(), pd.windows.end(), mw), pd.windows.end());
    withdraw(process.regions(), known);
    known.window_pd = 0;
  }
  process.settle(pd.number);
  process.mr_indices.give_back(mw->index);
  --pd.users;
  delete mw;
}

int bind_window(ibv_qp* qp, Mw& mw, const ibv_mw_bind& bind) {
  Process& process = Context::of(mw.context).process;
  MrShared& known = known_of(mw);
  const MutexLock guard(mw.binding);
  // The old binding ends here and not in the queue, where nobody can wait for
  // those that use it.
  const std::uint32_t old = bound_key(process, mw.index);
  withdraw(process.regions(), known);
  if (old != 0) process.settle(static_cast<Pd*>(mw.pd)->number);
  const std::uint32_t key = ibv_inc_rkey(mw.rkey);
  ibv_send_wr request{};
  request.wr_id = bind.wr_id;
  request.opcode = IBV_WR_BIND_MW;
  request.send_flags = bind.send_flags | kTypeOneBind;
  request.bind_mw.mw = &mw;
  request.bind_mw.rkey = key;
  request.bind_mw.bind_info = bind.bind_info;
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(qp, &request, &bad);
  if (error != 0) {
    process.publish_region(mw.index, old);
  } else {
    mw.rkey = key;
  }
  return error;
}

bool has_windows(Pd& pd, std::uint32_t region) {
  for (const Mw* mw : pd.windows) {
    if (is_bound(Context::of(mw->context).process, mw->index) && known_of(*mw).region == region) return true;
  }
  return false;
}

int fill_bind(SendOp& op, ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info& info,
              unsigned send_flags) noexcept {
  const bool type_one = (send_flags & kTypeOneBind) != 0;
  if (mw == nullptr || (mw->type == IBV_MW_TYPE_1) != type_one) return EINVAL;
  if ((info.mw_access_flags & ~kWindowAccess) != 0) return EINVAL;
  if (info.mr == nullptr && (info.length != 0 || !type_one)) return EINVAL;
  op.num_sge = 0;
  op.rkey = rkey;
  op.imm = Mw::of(mw).index;
  op.remote_addr = info.addr;
  op.compare_add = info.length;
  op.swap = static_cast<std::uint64_t>(info.mw_access_flags) << 32 | (info.mr != nullptr ? info.mr->lkey : 0);
  return 0;
}

int take_window_request(const ibv_send_wr& request, SendOp& op) noexcept {
  if ((op.flags & IBV_SEND_INLINE) != 0 && op.opcode != IBV_WR_SEND_WITH_INV) return EINVAL;
  op.imm = request.invalidate_rkey;
  if (op.opcode == IBV_WR_LOCAL_INV) op.num_sge = 0;
  if (op.opcode != IBV_WR_BIND_MW) return 0;
  return fill_bind(op, request.bind_mw.mw, request.bind_mw.rkey, request.bind_mw.bind_info,
                   request.send_flags);
}

namespace {

bool withdraw_window(const WindowUser& user, const SendOp& op) noexcept {
  const MrShared* window = find_withdrawable(user.process.regions(), op.imm, user.domain.number, user.qpn);
  if (window == nullptr) return false;
  withdraw(user.process.regions(), *window);
  // Whoever may use the window acts on this QP: once it has left, nothing more
  // is written. One that is stopped in the middle is not waited for.
  user.process.heavy_barrier();
  const std::uint64_t turn = user.qp.turns.load(std::memory_order_acquire);
  const std::uint64_t limit = monotonic_ns() + kLeaveLimitNs;
  while ((turn & 1) != 0 && user.qp.turns.load(std::memory_order_acquire) == turn && monotonic_ns() < limit) {
    ::sched_yield();
  }
  return true;
}

bool make_window(const WindowUser& user, const SendOp& op) noexcept {
  if (op.imm >= kMaxMrs) return false;
  MrShared& window = user.process.known_region(op.imm);
  const auto access = static_cast<unsigned>(op.swap >> 32);
  const auto lkey = static_cast<std::uint32_t>(op.swap);
  const std::uint64_t length = op.compare_add;
  const MutexLock guard(user.domain.windows_mutex);
  // Bound already: a window of type 2 has to be withdrawn first. One of type 1
  // comes here unbound, unless two binds of it stand in queues.
  if (window.pd != kWindowDomain || window.window_pd != user.domain.number || is_bound(user.process, op.imm) ||
      op.rkey >> 8 != op.imm) {
    return false;
  }
  const auto mw = std::find_if(user.domain.windows.begin(), user.domain.windows.end(),
                               [&op](const Mw* it) { return it->index == op.imm; });
  if (mw == user.domain.windows.end()) return false;
  if (length == 0 && (*mw)->type == IBV_MW_TYPE_1) return true;
  unsigned needed = IBV_ACCESS_MW_BIND;
  if ((access & kRemoteWriters) != 0) needed |= IBV_ACCESS_LOCAL_WRITE;
  const MrShared* region =
      find_region(user.process.regions(), lkey, user.domain.number, needed, op.remote_addr, length);
  if (region == nullptr || in_gpu(*region)) return false;
  window.access = access;
  window.qpn = (*mw)->type == IBV_MW_TYPE_2 ? user.qpn : 0;
  window.region = lkey >> 8;
  window.iova = (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : op.remote_addr;
  window.addr = region->addr + (op.remote_addr - region->iova);
  window.length = length;
  window.moved_begin = region->moved_begin;
  window.moved_end = region->moved_end;
  user.process.publish_region(op.imm, op.rkey);
  return true;
}

}  // namespace

Outcome change_window(const WindowUser& user, const SendOp& op) noexcept {
  const bool done = op.opcode == IBV_WR_LOCAL_INV ? withdraw_window(user, op) : make_window(user, op);
  return done ? Outcome{} : Outcome::failed(IBV_WC_MW_BIND_ERR);
}

}  // namespace gdrperf::softnic
