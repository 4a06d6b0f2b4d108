// Preloaded in front of the software device: its devices are mlx5's or EFA's in sysfs, and it is the libmlx5.so.1 or
// libefa.so.1 that programs look for, with QPs of DC or SRD. Each pair of them is an RC connection of the software
// device, made when the first request names the other one: both sides find each other by files in STANDIN_FOLDER.
// Refuses what the drivers do: other attributes than a state takes, a wrong key, a number that nobody has.
#include <infiniband/verbs.h>
#if STANDIN_IS_MLX5 && __has_include(<infiniband/mlx5dv.h>)
#include <infiniband/mlx5dv.h>
#define STANDIN_HEADER 1
#elif !STANDIN_IS_MLX5 && __has_include(<infiniband/efadv.h>)
#include <infiniband/efadv.h>
#define STANDIN_HEADER 1
#endif

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "driver_standin.h"

namespace {

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// The RC connection behind a pair.
int connect(Made& made, const ibv_ah_attr& path, std::uint32_t number) {
  const std::lock_guard lock(made.connecting);
  if (made.connected_to == number) return 0;
  if (made.connected_to != 0) return EINVAL;
  const auto modify = next<int(ibv_qp*, ibv_qp_attr*, int)>("ibv_modify_qp");
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = static_cast<ibv_mtu>(made.mtu);
  attr.dest_qp_num = number;
  attr.max_dest_rd_atomic = 16;
  attr.min_rnr_timer = 12;
  attr.ah_attr = path;
  int error = modify(made.qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error != 0) return error;
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  attr.max_rd_atomic = 16;
  error = modify(made.qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                     IBV_QP_MAX_QP_RD_ATOMIC);
  if (error == 0) made.connected_to = number;
  return error;
}

struct Ask {
  std::uint32_t number;
  std::uint64_t key;
  ibv_gid gid;
  std::uint8_t gid_index;
};

/// Connects those of this process that somebody asks for.
void listen() {
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    std::vector<Made*> here;
    {
      const std::lock_guard lock(standin_mutex);
      for (const auto& [qp, made] : made_by_qp) {
        if (made->role != Role::kInitiator && made->state >= IBV_QPS_RTR) here.push_back(made);
      }
    }
    for (Made* made : here) {
      Ask ask{};
      std::ifstream in(file(made->number, ".ask"), std::ios::binary);
      if (!in.read(reinterpret_cast<char*>(&ask), sizeof ask)) continue;
      ::unlink(file(made->number, ".ask").c_str());
      ibv_ah_attr path{};
      path.is_global = 1;
      path.port_num = static_cast<std::uint8_t>(made->port);
      path.grh.dgid = ask.gid;
      path.grh.sgid_index = ask.gid_index;
      path.grh.hop_limit = 64;
      if (ask.key != made->key || connect(*made, path, ask.number) != 0) continue;
      std::ofstream(file(made->number, ".up")) << ask.number;
    }
  }
}

/// Waits until the other one is there; ETIMEDOUT: nobody of that number and key answers.
int reach(Made& made, const Request& request) {
  if (made.connected_to == request.number && made.state == IBV_QPS_SQE) return 0;
  Ask ask{made.number, request.key, {}, request.path.grh.sgid_index};
  ::ibv_query_gid(made.qp->context, request.path.port_num, request.path.grh.sgid_index, &ask.gid);
  const std::string name = file(request.number, ".ask");
  const std::string unfinished = name + std::to_string(made.number);
  std::ofstream(unfinished, std::ios::binary).write(reinterpret_cast<const char*>(&ask), sizeof ask);
  ::rename(unfinished.c_str(), name.c_str());
  for (int i = 0; i < 2000; ++i) {
    if (::access(file(request.number, ".up").c_str(), F_OK) == 0) {
      const int error = connect(made, request.path, request.number);
      if (error == 0) made.state = IBV_QPS_SQE;  // both are
      return error;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return ETIMEDOUT;
}

int complete(ibv_qp_ex* requests) {
  Made* made = made_of(requests);
  int error = 0;
  for (Request& request : made->batch) {
    error = reach(*made, request);
    if (error != 0) break;
    if (!request.inlined.empty()) {
      request.pieces = {{reinterpret_cast<std::uintptr_t>(request.inlined.data()),
                         static_cast<std::uint32_t>(request.inlined.size()), 0}};
      request.wr.send_flags |= IBV_SEND_INLINE;
    }
    request.wr.sg_list = request.pieces.data();
    request.wr.num_sge = static_cast<int>(request.pieces.size());
    ibv_send_wr* bad = nullptr;
    error = made->post(made->qp, &request.wr, &bad);
    if (error != 0) break;
  }
  made->batch.clear();
  return error;
}

ibv_qp* make(ibv_context* context, ibv_qp_init_attr_ex& wanted, Role role, std::uint64_t key) {
  if (wanted.qp_type != IBV_QPT_DRIVER || (wanted.comp_mask & IBV_QP_INIT_ATTR_PD) == 0) {
    errno = EINVAL;
    return nullptr;
  }
  const std::uint64_t ops = (wanted.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0 ? wanted.send_ops_flags : 0;
  ibv_qp_init_attr_ex plain = wanted;
  plain.qp_type = IBV_QPT_RC;
  plain.comp_mask = IBV_QP_INIT_ATTR_PD;
  ibv_qp* qp = ::ibv_create_qp_ex(context, &plain);
  if (qp == nullptr) return nullptr;
  wanted.cap = plain.cap;
  auto* made = new Made;
  made->role = role;
  made->qp = qp;
  made->number = qp->qp_num;
  made->key = key;
  made->post = context->ops.post_send;
  if (role != Role::kTarget) fill(*made, ops, complete);
  const std::lock_guard lock(standin_mutex);
  made_by_qp[qp] = made;
  return qp;
}

int mask_of(Role role, ibv_qp_state state) {
  const int init = IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  switch (state) {
    case IBV_QPS_INIT:
      return init | (role == Role::kTarget ? IBV_QP_ACCESS_FLAGS : role == Role::kSrd ? IBV_QP_QKEY : 0);
    case IBV_QPS_RTR:
      return role == Role::kSrd ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | (role == Role::kTarget ? IBV_QP_MIN_RNR_TIMER : 0);
    case IBV_QPS_RTS:
      return role == Role::kSrd
                 ? IBV_QP_SQ_PSN
                 : IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    default: return -1;
  }
}

bool is_driver_link(const char* path) {
  const std::string_view text(path);
  return text.starts_with("/sys/class/infiniband/") && text.ends_with("/device/driver");
}

}  // namespace

// The real headers, where there are some, say the same of what is read here by its place.
#if STANDIN_HEADER && STANDIN_IS_MLX5
static_assert(offsetof(mlx5dv_qp_init_attr, create_flags) == 8 &&
              offsetof(mlx5dv_qp_init_attr, dc_init_attr.dc_type) == 16);
static_assert(offsetof(mlx5dv_qp_init_attr, dc_init_attr.dct_access_key) == 24 && sizeof(mlx5dv_qp_init_attr) == 40);
static_assert(offsetof(mlx5dv_qp_ex, wr_set_dc_addr) == offsetof(Mlx5QpEx, set_dc_address));
static_assert(MLX5DV_QP_INIT_ATTR_MASK_DC == 2 && MLX5DV_DCTYPE_DCT == 1 && MLX5DV_DCTYPE_DCI == 2);
static_assert(MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE == 8);
#elif STANDIN_HEADER
static_assert(offsetof(efadv_qp_init_attr, driver_qp_type) == 8 && EFADV_QP_DRIVER_TYPE_SRD == 0);
static_assert(offsetof(efadv_device_attr, device_caps) == 24 && EFADV_DEVICE_ATTR_CAPS_RDMA_READ == 1);
#endif

extern "C" {

int lstat(const char* path, struct stat* found) {
  if (!is_driver_link(path)) return next<int(const char*, struct stat*)>("lstat")(path, found);
  *found = {};
  found->st_mode = S_IFLNK | 0777;
  return 0;
}

ssize_t readlink(const char* path, char* target, std::size_t size) {
  if (!is_driver_link(path)) return next<ssize_t(const char*, char*, std::size_t)>("readlink")(path, target, size);
  constexpr std::string_view kTarget = "../../bus/pci/drivers/" STANDIN_DRIVER;
  return static_cast<ssize_t>(kTarget.copy(target, size));
}

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  ibv_ah* handle = next<ibv_ah*(ibv_pd*, ibv_ah_attr*)>("ibv_create_ah")(pd, attr);
  const std::lock_guard lock(standin_mutex);
  if (handle != nullptr) handles[handle] = *attr;
  return handle;
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  if (Made* made = made_of(qp)) return made->role == Role::kTarget ? nullptr : &made->requests;
  return next<ibv_qp_ex*(ibv_qp*)>("ibv_qp_to_qp_ex")(qp);
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  Made* made = made_of(qp);
  if (made == nullptr) return next<int(ibv_qp*, ibv_qp_attr*, int)>("ibv_modify_qp")(qp, attr, mask);
  if (mask != (IBV_QP_STATE | mask_of(made->role, attr->qp_state)) || attr->qp_state != made->state + 1) return EINVAL;
  if (made->role == Role::kTarget && attr->qp_state == IBV_QPS_RTS) return EINVAL;
  made->state = attr->qp_state;
  if (mask & IBV_QP_PORT) made->port = attr->port_num;
  if (mask & IBV_QP_PATH_MTU) made->mtu = attr->path_mtu;
  if (mask & IBV_QP_QKEY) made->key = attr->qkey;
  if (made->state == IBV_QPS_INIT) {
    ibv_qp_attr plain{};
    plain.qp_state = IBV_QPS_INIT;
    plain.port_num = attr->port_num;
    plain.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    const auto modify = next<int(ibv_qp*, ibv_qp_attr*, int)>("ibv_modify_qp");
    return modify(qp, &plain, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  }
  if (made->role != Role::kInitiator && made->state == IBV_QPS_RTR && !listening.exchange(true))
    std::thread(listen).detach();
  return 0;
}

int ibv_destroy_qp(ibv_qp* qp) {
  {
    const std::lock_guard lock(standin_mutex);
    made_by_qp.erase(qp);  // what it is stays: the other thread may look at it
  }
  return next<int(ibv_qp*)>("ibv_destroy_qp")(qp);
}

#if STANDIN_IS_MLX5
#if STANDIN_HEADER
using DcAttributes = mlx5dv_qp_init_attr;
using DcRequests = mlx5dv_qp_ex;
#else
using DcAttributes = unsigned char;
using DcRequests = Mlx5QpEx;
#endif

ibv_qp* mlx5dv_create_qp(ibv_context* context, ibv_qp_init_attr_ex* attr, DcAttributes* typed) {
  const auto* own = reinterpret_cast<const unsigned char*>(typed);
  std::uint64_t mask = 0, key = 0;
  std::uint32_t flags = 0, type = 0;
  std::memcpy(&mask, own, sizeof mask);
  std::memcpy(&flags, own + 8, sizeof flags);
  std::memcpy(&type, own + 16, sizeof type);
  std::memcpy(&key, own + 24, sizeof key);
  const bool target = type == 1;
  const bool sound =
      mask == (target ? 2u : 3u) && (target || (type == 2 && flags == 8)) && (target == (attr->srq != nullptr));
  if (!sound) {
    errno = EINVAL;
    return nullptr;
  }
  ibv_qp* qp = make(context, *attr, target ? Role::kTarget : Role::kInitiator, key);
  if (qp != nullptr) note(target ? "dct" : "dci");
  return qp;
}

DcRequests* mlx5dv_qp_ex_from_ibv_qp_ex(ibv_qp_ex* requests) {
  Made* made = made_of(requests);
  if (made == nullptr) return nullptr;
  made->dc.set_dc_address = [](Mlx5QpEx* dc, ibv_ah* handle, std::uint32_t number, std::uint64_t key) {
    auto* owner = reinterpret_cast<Made*>(reinterpret_cast<char*>(dc) - offsetof(Made, dc));
    name(&owner->requests, handle, number, key);
  };
  return reinterpret_cast<DcRequests*>(&made->dc);
}
#else
#if STANDIN_HEADER
using SrdAttributes = efadv_qp_init_attr;
using SrdDevice = efadv_device_attr;
#else
using SrdAttributes = unsigned char;
using SrdDevice = unsigned char;
#endif

ibv_qp* efadv_create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr, SrdAttributes* typed, std::uint32_t bytes) {
  const auto* own = reinterpret_cast<const unsigned char*>(typed);
  std::uint32_t type = 1;
  if (bytes >= 12) std::memcpy(&type, own + 8, sizeof type);
  if (type != 0 || attr->cap.max_inline_data > 32) {
    errno = EINVAL;
    return nullptr;
  }
  ibv_qp* qp = make(context, *attr, Role::kSrd, 0);
  if (qp != nullptr) note("srd");
  return qp;
}

int efadv_query_device(ibv_context*, SrdDevice* typed, std::uint32_t bytes) {
  auto* attributes = reinterpret_cast<unsigned char*>(typed);
  if (bytes < 32) return EINVAL;
  const std::uint32_t capabilities = 1 | 8, most = 1u << 20;
  std::memcpy(attributes + 24, &capabilities, sizeof capabilities);
  std::memcpy(attributes + 28, &most, sizeof most);
  return 0;
}
#endif

}  // extern "C"
