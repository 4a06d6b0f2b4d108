#pragma once

#include <cstdint>
#include <memory>

#include "mlx5/command.h"
#include "mlx5/rings.h"
#include "objects/queues/qp.h"

namespace gdrperf::softnic {

/// A QP that was made by a command: its rings are memory of the program's.
struct DevxQp {
  std::unique_ptr<Qp> qp;
  std::uint8_t port = 1;
  int access = 0;
  std::uint32_t user_index = 0;
};

/// Part of a umem; null where there is none such, or it has not so many bytes from `offset` on.
mlx5::Span find_umem(const Context& owner, std::uint32_t id, std::uint64_t offset, std::uint64_t bytes);
/// A PD whose number the program asked for; null: there is none of that number.
ibv_pd* find_pd(Context& owner, std::uint32_t number);
/// A CQ that was made by a command; null: there is none of that number.
Cq* find_devx_cq(const Context& owner, std::uint32_t number);
/// The same of a pool of receives.
Srq* find_rmp(const Context& owner, std::uint32_t number);

/// Null: refused, `out` says why.
std::unique_ptr<DevxQp> create_devx_qp(Context& context, const mlx5::Words& in, mlx5::Words& out);
/// A change of its state. 0, or an errno.
int modify_devx_qp(DevxQp& qp, const mlx5::Words& in);
void query_devx_qp(DevxQp& qp, mlx5::Words& out);

}  // namespace gdrperf::softnic
