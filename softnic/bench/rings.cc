// Messages of 8 bytes by the rings of a device with mlx5=on: written by hand, and executed by its thread; or by
// ibv_post_send, on the thread that posts. Millions a second.
//
//   softnic_rings hand QPS LIST COUNT    lists of LIST WQEs, four in flight on each QP, the last of each signalled
//   softnic_rings post QPS LIST COUNT    the same by ibv_post_send and ibv_poll_cq

#include <dlfcn.h>
#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gdrperf/base/clock.h"

namespace {

constexpr std::uint8_t kGid = 2;
constexpr std::uint32_t kInFlight = 4;

void need(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "softnic_rings: %s failed\n", what);
  std::exit(3);
}

struct Device {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_mr* mr = nullptr;
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(8192);
  ibv_gid gid{};

  Device() {
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    need(list != nullptr && count > 0, "ibv_get_device_list");
    context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    need(context != nullptr, "ibv_open_device");
    pd = ibv_alloc_pd(context);
    mr = ibv_reg_mr(pd, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    need(mr != nullptr, "ibv_reg_mr");
    need(ibv_query_gid(context, 1, kGid, &gid) == 0, "ibv_query_gid");
  }
};

/// A QP that is its own peer, and its CQ.
struct Queue {
  ibv_cq* cq;
  ibv_qp* qp;
  mlx5dv_qp rings{};
  mlx5dv_cq cqes{};
  std::uint16_t producer = 0;
  std::uint32_t consumer = 0;
  std::uint32_t in_flight = 0;  ///< lists

  Queue(Device& device, std::uint32_t list) {
    cq = ibv_create_cq(device.context, 64, nullptr, nullptr, 0);
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.send_cq = init.recv_cq = cq;
    init.cap = {kInFlight * list, 1, 1, 1, 0};
    qp = ibv_create_qp(device.pd, &init);
    need(qp != nullptr, "ibv_create_qp");
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    need(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
    attr = {};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_4096;
    attr.dest_qp_num = qp->qp_num;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.dgid = device.gid;
    attr.ah_attr.grh.sgid_index = kGid;
    need(ibv_modify_qp(qp, &attr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
         "RTR");
    attr = {};
    attr.qp_state = IBV_QPS_RTS;
    need(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                      IBV_QP_MAX_QP_RD_ATOMIC) == 0, "RTS");
  }
};

void show(Queue& queue) {
  static void* const library = ::dlopen("libmlx5.so.1", RTLD_NOW);
  need(library != nullptr, "dlopen(libmlx5.so.1)");
  static auto* const init = reinterpret_cast<int (*)(mlx5dv_obj*, std::uint64_t)>(::dlsym(library, "mlx5dv_init_obj"));
  need(init != nullptr, "dlsym(mlx5dv_init_obj)");
  mlx5dv_obj object{};
  object.qp = {queue.qp, &queue.rings};
  object.cq = {queue.cq, &queue.cqes};
  need(init(&object, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ) == 0, "mlx5dv_init_obj (mlx5=on?)");
}

void post_by_hand(const Device& device, Queue& queue, std::uint32_t list) {
  std::uint8_t* wqe = nullptr;
  for (std::uint32_t i = 0; i < list; ++i) {
    wqe = static_cast<std::uint8_t*>(queue.rings.sq.buf) + (queue.producer & (queue.rings.sq.wqe_cnt - 1)) * 64;
    auto* control = reinterpret_cast<mlx5_wqe_ctrl_seg*>(wqe);
    mlx5dv_set_ctrl_seg(control, queue.producer++, MLX5_OPCODE_RDMA_WRITE, 0, queue.qp->qp_num,
                        i + 1 == list ? std::uint8_t{MLX5_WQE_CTRL_CQ_UPDATE} : std::uint8_t{0}, 3, 0, 0);
    auto* remote = reinterpret_cast<mlx5_wqe_raddr_seg*>(wqe + 16);
    *remote = {htobe64(reinterpret_cast<std::uint64_t>(device.memory.data()) + 4096), htobe32(device.mr->rkey), 0};
    mlx5dv_set_data_seg(reinterpret_cast<mlx5_wqe_data_seg*>(wqe + 32), 8, device.mr->lkey,
                        reinterpret_cast<std::uintptr_t>(device.memory.data()));
  }
  std::atomic_ref(queue.rings.dbrec[MLX5_SND_DBR]).store(htobe32(queue.producer), std::memory_order_release);
  std::uint64_t doorbell;
  std::memcpy(&doorbell, wqe, sizeof doorbell);
  std::atomic_ref(*static_cast<std::uint64_t*>(queue.rings.bf.reg)).store(doorbell, std::memory_order_release);
}

bool poll_by_hand(Queue& queue) {
  auto& cqe = static_cast<mlx5_cqe64*>(queue.cqes.buf)[queue.consumer & (queue.cqes.cqe_cnt - 1)];
  const std::uint8_t word = std::atomic_ref(cqe.op_own).load(std::memory_order_acquire);
  if (word >> 4 == MLX5_CQE_INVALID || (word & 1) != ((queue.consumer & queue.cqes.cqe_cnt) != 0 ? 1 : 0)) return false;
  need(word >> 4 == MLX5_CQE_REQ, "a request");
  std::atomic_ref(queue.cqes.dbrec[0]).store(htobe32(++queue.consumer & 0xffffff), std::memory_order_release);
  return true;
}

void post_by_verbs(const Device& device, Queue& queue, std::uint32_t list) {
  static std::vector<ibv_send_wr> requests;
  static ibv_sge sge;
  if (requests.size() != list) {
    requests.assign(list, {});
    sge = {reinterpret_cast<std::uint64_t>(device.memory.data()), 8, device.mr->lkey};
    for (std::uint32_t i = 0; i < list; ++i) {
      requests[i].opcode = IBV_WR_RDMA_WRITE;
      requests[i].sg_list = &sge;
      requests[i].num_sge = 1;
      requests[i].wr.rdma = {sge.addr + 4096, device.mr->rkey};
      requests[i].next = i + 1 < list ? &requests[i + 1] : nullptr;
    }
    requests.back().send_flags = IBV_SEND_SIGNALED;
  }
  ibv_send_wr* bad = nullptr;
  need(ibv_post_send(queue.qp, requests.data(), &bad) == 0, "ibv_post_send");
}

bool poll_by_verbs(Queue& queue) {
  ibv_wc completion;
  const int found = ibv_poll_cq(queue.cq, 1, &completion);
  need(found >= 0 && (found == 0 || completion.status == IBV_WC_SUCCESS), "ibv_poll_cq");
  return found > 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  if (argc != 5 || (how != "hand" && how != "post")) {
    std::fprintf(stderr, "usage: softnic_rings hand|post QPS LIST COUNT\n");
    return 2;
  }
  const bool by_hand = how == "hand";
  const auto list = static_cast<std::uint32_t>(std::atoi(argv[3]));
  const std::uint64_t count = std::strtoull(argv[4], nullptr, 10);
  Device device;
  std::vector<std::unique_ptr<Queue>> queues;
  for (int i = 0; i < std::atoi(argv[2]); ++i) {
    queues.push_back(std::make_unique<Queue>(device, list));
    if (by_hand) show(*queues.back());
  }
  const gdrperf::Clock& clock = gdrperf::Clock::get();
  const std::uint64_t begin = clock.ticks();
  std::uint64_t posted = 0;
  std::uint64_t done = 0;
  while (done < count) {
    bool idle = true;
    for (const auto& it : queues) {
      while (it->in_flight < kInFlight && posted < count) {
        by_hand ? post_by_hand(device, *it, list) : post_by_verbs(device, *it, list);
        ++it->in_flight;
        posted += list;
        idle = false;
      }
      while (by_hand ? poll_by_hand(*it) : poll_by_verbs(*it)) {
        --it->in_flight;
        done += list;
        idle = false;
      }
    }
    if (idle) ::sched_yield();
  }
  std::printf("%.3f\n", static_cast<double>(done) * 1e3 / clock.to_ns(clock.ticks() - begin));
  return 0;
}
