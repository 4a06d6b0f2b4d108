#include "objects/attributes/multicast.h"

#include <cerrno>

#include "host/process/groups.h"
#include "objects/attributes/context.h"
#include "objects/queues/qp.h"
#include "shared/segment/multicast.h"
#include "transport/ud/ud_groups.h"

namespace gdrperf::softnic {

int attach_multicast(ibv_qp* qp, const ibv_gid& group) {
  if (!Context::of(qp->context).alive() || qp->qp_type != IBV_QPT_UD || !is_multicast(group)) return EINVAL;
  Qp& ours = Qp::of(qp);
  const Device& device = ours.owner.device;
  take_group(ours.process, device, group, ours.number());
  const int error = ours.process.groups().join(group, ours.process.block(), ours.index);
  if (error != 0) leave_group(ours.process, device, group, ours.number());
  return error;
}

int detach_multicast(ibv_qp* qp, const ibv_gid& group) {
  if (!Context::of(qp->context).alive() || qp->qp_type != IBV_QPT_UD) return EINVAL;
  Qp& ours = Qp::of(qp);
  leave_group(ours.process, ours.owner.device, group, ours.number());
  return ours.process.groups().leave(group, ours.index);
}

}  // namespace gdrperf::softnic
