#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "abi/verbs/abi.h"
#include "abi/libc/forward.h"
#include "abi/libc/kernel_only.h"
#include "objects/attributes/calls.h"
#include "objects/attributes/context.h"
#include "objects/queues/verbs_ops.h"

/// Exported functions about devices, ports and GIDs, each one: ours, or on to
/// the real library.
using namespace gdrperf::softnic;

namespace {

/// Result of ibv_get_device_list, found again by ibv_free_device_list.
struct DeviceList {
  ibv_device** real = nullptr;
  std::vector<ibv_device*> merged;
};

std::mutex g_lists_mutex;
std::vector<std::unique_ptr<DeviceList>>& lists() {
  static auto* made = new std::vector<std::unique_ptr<DeviceList>>();
  return *made;
}

/// Of a context of ours; null: its device has no such port.
const Device* port_of(ibv_context* context, unsigned number) { return Context::of(context).device.port_at(number); }

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

ibv_device** ibv_get_device_list(int* num_devices) {
  auto list = std::make_unique<DeviceList>();
  for (const auto& device : devices()) list->merged.push_back(device.get());
  const auto real = SOFTNIC_REAL(ibv_get_device_list);
  int count = 0;
  if (real != nullptr) {
    const KernelOnly aside;
    list->real = real(&count);
  }
  for (int i = 0; list->real != nullptr && i < count; ++i) list->merged.push_back(list->real[i]);
  if (num_devices != nullptr) *num_devices = static_cast<int>(list->merged.size());
  list->merged.push_back(nullptr);
  errno = 0;
  ibv_device** result = list->merged.data();
  const std::lock_guard guard(g_lists_mutex);
  lists().push_back(std::move(list));
  return result;
}

void ibv_free_device_list(ibv_device** list) {
  const std::lock_guard guard(g_lists_mutex);
  for (auto it = lists().begin(); it != lists().end(); ++it) {
    if ((*it)->merged.data() != list) continue;
    if ((*it)->real != nullptr) SOFTNIC_REAL(ibv_free_device_list)((*it)->real);
    lists().erase(it);
    return;
  }
}

const char* ibv_get_device_name(ibv_device* device) {
  if (soft_device(device) != nullptr) return device->name;
  const auto real = SOFTNIC_REAL(ibv_get_device_name);
  return real != nullptr ? real(device) : nullptr;
}

int ibv_get_device_index(ibv_device* device) {
  if (const Device* ours = soft_device(device)) return static_cast<int>(ours->kernel_index());
  const auto real = SOFTNIC_REAL(ibv_get_device_index);
  return real != nullptr ? real(device) : -1;
}

__be64 ibv_get_device_guid(ibv_device* device) {
  if (const Device* ours = soft_device(device)) return ours->guid();
  const auto real = SOFTNIC_REAL(ibv_get_device_guid);
  return real != nullptr ? real(device) : 0;
}

ibv_context* ibv_open_device(ibv_device* device) {
  if (soft_device(device) != nullptr) return open_device(device);
  SOFTNIC_FORWARD_POINTER(ibv_open_device, device);
}

int ibv_close_device(ibv_context* context) {
  if (is_soft(context)) return close_device(context);
  SOFTNIC_FORWARD_ERROR(ibv_close_device, context);
}

int ibv_query_device(ibv_context* context, ibv_device_attr* attr) {
  if (is_soft(context)) {
    describe_device(Context::of(context).device, *attr);
    return 0;
  }
  SOFTNIC_FORWARD_ERROR(ibv_query_device, context, attr);
}

#undef ibv_query_port
int ibv_query_port(ibv_context* context, std::uint8_t port, _compat_ibv_port_attr* attr) {
  if (is_soft(context)) {
    const Device* const own = port_of(context, port);
    if (own == nullptr) return EINVAL;
    ibv_port_attr full;
    describe_port(*own, full);
    // The old struct ends before port_cap_flags2.
    std::memcpy(static_cast<void*>(attr), &full, offsetof(ibv_port_attr, port_cap_flags2));
    return 0;
  }
  SOFTNIC_FORWARD_ERROR(ibv_query_port, context, port, attr);
}

int ibv_query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) {
  if (is_soft(context)) {
    const Device* const own = port_of(context, port);
    if (own == nullptr || index < 0 || static_cast<std::uint32_t>(index) >= own->gid_slots()) {
      errno = EINVAL;
      return -1;
    }
    *gid = own->gid(static_cast<std::uint32_t>(index));
    return 0;
  }
  SOFTNIC_FORWARD_MINUS(ibv_query_gid, context, port, index, gid);
}

int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port, std::uint32_t index,
                      ibv_gid_entry* entry, std::uint32_t flags, std::size_t size) {
  if (is_soft(context)) {
    const Device* const own = port_of(context, port);
    if (own == nullptr || flags != 0) return EINVAL;
    ibv_gid_entry full;
    const int error = describe_gid(*own, index, full);
    if (error == 0) std::memcpy(entry, &full, std::min(size, sizeof full));
    return error;
  }
  SOFTNIC_FORWARD_ERROR(_ibv_query_gid_ex, context, port, index, entry, flags, size);
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t capacity,
                             std::uint32_t flags, std::size_t size) {
  if (is_soft(context)) {
    if (flags != 0) return -EINVAL;
    std::size_t count = 0;
    const Device& device = Context::of(context).device;
    for (std::uint32_t place = 0; place < device.port_count() * kGidsPerPort; ++place) {
      ibv_gid_entry full;
      if (describe_gid(*device.port_at(1 + place / kGidsPerPort), place % kGidsPerPort, full) != 0) continue;
      if (count == capacity) return -EINVAL;
      auto* to = reinterpret_cast<std::uint8_t*>(entries) + count++ * size;
      std::memcpy(to, &full, std::min(size, sizeof full));
    }
    return static_cast<ssize_t>(count);
  }
  const auto real = SOFTNIC_REAL(_ibv_query_gid_table);
  return real != nullptr ? real(context, entries, capacity, flags, size) : -EOPNOTSUPP;
}

// Not in a public header; used by ibv_devinfo. The values are those of the
// kernel's sysfs: 0 for IB and RoCE v1, 1 for RoCE v2.
int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, unsigned* type);
int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, unsigned* type) {
  if (is_soft(context)) {
    ibv_gid_entry entry;
    const Device* const own = port_of(context, port);
    if (own == nullptr || describe_gid(*own, index, entry) != 0) {
      errno = EINVAL;
      return -1;
    }
    *type = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 1 : 0;
    return 0;
  }
  SOFTNIC_FORWARD_MINUS(ibv_query_gid_type, context, port, index, type);
}

int ibv_query_pkey(ibv_context* context, std::uint8_t port, int index, __be16* pkey) {
  if (is_soft(context)) {
    if (port_of(context, port) == nullptr || index != 0) {
      errno = EINVAL;
      return -1;
    }
    *pkey = 0xffff;
    return 0;
  }
  SOFTNIC_FORWARD_MINUS(ibv_query_pkey, context, port, index, pkey);
}

int ibv_get_pkey_index(ibv_context* context, std::uint8_t port, __be16 pkey) {
  if (is_soft(context)) {
    if (port_of(context, port) != nullptr && pkey == 0xffff) return 0;
    errno = EINVAL;
    return -1;
  }
  SOFTNIC_FORWARD_MINUS(ibv_get_pkey_index, context, port, pkey);
}

int ibv_resolve_eth_l2_from_gid(ibv_context* context, ibv_ah_attr* attr,
                                std::uint8_t mac[ETHERNET_LL_SIZE], std::uint16_t* vlan) {
  if (is_soft(context)) {
    if (attr->is_global == 0 || port_of(context, attr->port_num) == nullptr) return EINVAL;
    std::uint8_t found[ETHERNET_LL_SIZE];
    const int error = hardware_address_of(attr->grh.dgid, found);
    if (error != 0) return error;
    std::memcpy(mac, found, sizeof found);
    if (vlan != nullptr) *vlan = 0xffff;  // none
    return 0;
  }
  SOFTNIC_FORWARD_ERROR(ibv_resolve_eth_l2_from_gid, context, attr, mac, vlan);
}

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  if (is_soft(context)) return get_async_event(context, *event);
  SOFTNIC_FORWARD_MINUS(ibv_get_async_event, context, event);
}

void ibv_ack_async_event(ibv_async_event* event) {
  const ibv_context* context = nullptr;
  switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
      context = event->element.cq->context;
      break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      context = event->element.qp->context;
      break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      context = event->element.srq->context;
      break;
    default:
      break;
  }
  if (context != nullptr && is_soft(context)) return;
  if (const auto real = SOFTNIC_REAL(ibv_ack_async_event)) real(event);
}

ibv_context* ibv_import_device(int cmd_fd) {
  if (is_command_descriptor(cmd_fd)) SOFTNIC_REFUSE_POINTER(EOPNOTSUPP);
  SOFTNIC_FORWARD_POINTER(ibv_import_device, cmd_fd);
}

ibv_pd* ibv_import_pd(ibv_context* context, std::uint32_t handle) {
  if (is_soft(context)) SOFTNIC_REFUSE_POINTER(EOPNOTSUPP);
  SOFTNIC_FORWARD_POINTER(ibv_import_pd, context, handle);
}

ibv_mr* ibv_import_mr(ibv_pd* pd, std::uint32_t handle) {
  if (is_soft(pd->context)) SOFTNIC_REFUSE_POINTER(EOPNOTSUPP);
  SOFTNIC_FORWARD_POINTER(ibv_import_mr, pd, handle);
}

ibv_dm* ibv_import_dm(ibv_context* context, std::uint32_t handle) {
  if (is_soft(context)) SOFTNIC_REFUSE_POINTER(EOPNOTSUPP);
  SOFTNIC_FORWARD_POINTER(ibv_import_dm, context, handle);
}

#pragma GCC visibility pop
}
