#include "objects/mlx5/devx_rmp.h"

#include <algorithm>
#include <utility>

#include "mlx5/nic.h"
#include "objects/mlx5/devx_qp.h"

namespace gdrperf::softnic {
namespace {

constexpr std::uint32_t kLeastLogStride = 4, kMostLogStride = 10;

}  // namespace

std::unique_ptr<Srq> create_rmp(Context& context, const mlx5::Words& in, mlx5::Words& out) {
  using namespace mlx5;
  const auto wq = [&](Field it) { return in.get32(it.within(rmp::kWqAt)); };
  const auto refuse = [&](CommandStatus status, std::uint32_t syndrome) {
    answer(out, status, syndrome);
    return nullptr;
  };
  const bool cyclic = wq(rmp::kWqType) == rmp::kCyclicWq;
  if (wq(rmp::kWqType) > rmp::kCyclicWq || in.get32(rmp::kState.within(rmp::kContextAt)) != rmp::kReady ||
      cyclic != (in.get32(rmp::kCyclic.within(rmp::kContextAt)) != 0))
    return refuse(kBadParameter, 1);
  // A link takes an octoword in front of the data.
  const std::uint32_t log_stride = wq(rmp::kLogStride), log_size = wq(rmp::kLogSize);
  if (log_stride < kLeastLogStride + (cyclic ? 0 : 1) || log_stride > kMostLogStride || (1u << log_size) > kMaxSrqWr)
    return refuse(kBadParameter, 3);
  ibv_pd* const pd = find_pd(context, wq(rmp::kPd));
  if (pd == nullptr) return refuse(kBadResource, 4);
  Layout layout;
  layout.receives = 1u << log_size;
  layout.receive_bytes = 1u << log_stride;
  const Span ring = find_umem(context, wq(rmp::kUmem), in.get(rmp::kUmemOffset.within(rmp::kWqAt)),
                              std::uint64_t{layout.receives} * layout.receive_bytes);
  const Span record =
      find_umem(context, wq(rmp::kDbrUmem), in.get(rmp::kDbrAddress.within(rmp::kWqAt)), sizeof(std::uint32_t));
  // As of a QP's receives: the watching thread does not look into a GPU all the time.
  if (ring.address == nullptr || record.address == nullptr || ring.in_gpu || record.in_gpu)
    return refuse(kBadParameter, 5);
  if ((reinterpret_cast<std::uintptr_t>(ring.address) & 63) != 0 ||
      (reinterpret_cast<std::uintptr_t>(record.address) & 3) != 0)
    return refuse(kBadParameter, 6);
  layout.receive = ring.address;
  const std::uint32_t octowords = layout.receive_bytes / kOctoword - (cyclic ? 0 : 1);
  ibv_srq_init_attr attr{};
  attr.attr.max_wr = layout.receives;
  attr.attr.max_sge = std::min(octowords, kMaxSge);
  auto made = std::make_unique<Srq>(Pd::of(pd), attr);
  made->rings = std::make_unique<WorkQueues>(layout, std::make_unique<Record>(record), Pages::Register{});
  made->rings->linked = !cyclic;
  if (made->watch_ring() != 0) return refuse(kNoResources, 7);
  return made;
}

}  // namespace gdrperf::softnic
