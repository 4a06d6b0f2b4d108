#include "objects/attributes/ah.h"

#include <cerrno>
#include <cstring>
#include <memory>

#include "objects/queues/failure.h"
#include "shared/segment/multicast.h"
#include "transport/rc/grh.h"
#include "transport/ud/ud.h"

namespace gdrperf::softnic {

ibv_ah* create_address(Pd& pd, const ibv_ah_attr& attributes) {
  auto ah = std::make_unique<Ah>();
  ah->context = pd.context;
  ah->pd = &pd;
  ah->attributes = attributes;
  if (Context::of(pd.context).device.complete_path(ah->attributes) != 0) throw VerbsFailure{EINVAL};
  ++pd.users;
  return ah.release();
}

void destroy_address(ibv_ah* handle) {
  --static_cast<Pd*>(handle->pd)->users;
  delete static_cast<Ah*>(handle);
}

int address_of_sender(const Device& device, const ibv_wc& completion, const ibv_grh* header, std::uint8_t port,
                      ibv_ah_attr& attributes) {
  static_assert(sizeof *header == kGrhBytes);
  if (header == nullptr) return EINVAL;
  std::uint8_t bytes[kGrhBytes];
  std::memcpy(bytes, header, sizeof bytes);
  Route route{};
  const Device* const own_port = device.port_at(port);
  if (own_port == nullptr || (completion.wc_flags & IBV_WC_GRH) == 0 || !read_grh(bytes, route)) return EINVAL;
  for (std::uint32_t entry = 0; entry < kGidsPerPort; ++entry) {
    const ibv_gid own = own_port->gid(entry);
    if (kGidKinds[entry].type != route.kind.type || kGidKinds[entry].ipv4 != route.kind.ipv4 ||
        (std::memcmp(&own, &route.to, sizeof own) != 0 && !is_multicast(route.to))) {
      continue;
    }
    attributes = {};
    attributes.is_global = 1;
    attributes.port_num = port;
    attributes.dlid = completion.slid;
    attributes.sl = completion.sl;
    attributes.src_path_bits = completion.dlid_path_bits;
    attributes.grh.dgid = route.from;
    attributes.grh.sgid_index = static_cast<std::uint8_t>(entry);
    attributes.grh.hop_limit = 0xff;
    return 0;
  }
  return EINVAL;
}

void address(SendOp& op, const ibv_ah& handle, std::uint32_t qpn, std::uint32_t qkey) noexcept {
  const ibv_ah_attr& there = static_cast<const Ah&>(handle).attributes;
  Destination to;
  to.gid = there.grh.dgid;
  to.sgid_index = there.grh.sgid_index;
  to.qpn = qpn & 0xffffff;
  to.qkey = qkey;
  to.put_into(op);
}

}  // namespace gdrperf::softnic
