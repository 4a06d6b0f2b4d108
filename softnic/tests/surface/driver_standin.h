#pragma once

// What a QP of driver_standin.cc is, and requests as they are built by ibv_wr_*(3).
#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

enum class Role { kInitiator, kTarget, kSrd };

struct Request {
  ibv_send_wr wr{};
  std::vector<ibv_sge> pieces;
  ibv_ah_attr path{};
  std::uint32_t number = 0;
  std::uint64_t key = 0;
  std::vector<std::byte> inlined;
};

struct Mlx5QpEx {
  std::uint64_t comp_mask;
  void (*set_dc_address)(Mlx5QpEx*, ibv_ah*, std::uint32_t, std::uint64_t);
};

struct Made {
  Role role{};
  ibv_qp* qp = nullptr;
  std::uint32_t number = 0;  ///< a target's is hidden until it can answer
  std::uint64_t key = 0;
  int (*post)(ibv_qp*, ibv_send_wr*, ibv_send_wr**) = nullptr;
  ibv_qp_ex requests{};
  Mlx5QpEx dc{};
  std::vector<Request> batch;
  int port = 1, mtu = IBV_MTU_1024;
  ibv_qp_state state = IBV_QPS_RESET;
  std::uint32_t connected_to = 0;
  std::mutex connecting;
};

std::mutex standin_mutex;
std::map<ibv_qp*, Made*> made_by_qp;
std::map<const ibv_ah*, ibv_ah_attr> handles;
std::atomic<bool> listening{false};

Made* made_of(ibv_qp* qp) {
  const std::lock_guard lock(standin_mutex);
  const auto found = made_by_qp.find(qp);
  return found == made_by_qp.end() ? nullptr : found->second;
}
Made* made_of(const ibv_qp_ex* requests) {
  const std::lock_guard lock(standin_mutex);
  for (const auto& [qp, made] : made_by_qp) {
    if (&made->requests == requests) return made;
  }
  return nullptr;
}

std::string file(std::uint32_t number, const char* what) {
  return std::string(std::getenv("STANDIN_FOLDER")) + "/" + std::to_string(number) + what;
}
void note(const std::string& line) {
  std::ofstream(std::string(std::getenv("STANDIN_FOLDER")) + "/log", std::ios::app) << line << '\n';
}

Request& last(ibv_qp_ex* requests) { return made_of(requests)->batch.back(); }
Request& begin(ibv_qp_ex* requests, ibv_wr_opcode opcode) {
  Made* made = made_of(requests);
  made->batch.emplace_back();
  Request& request = made->batch.back();
  request.wr.opcode = opcode;
  request.wr.wr_id = requests->wr_id;
  request.wr.send_flags = requests->wr_flags;
  return request;
}
void remote(Request& request, std::uint32_t rkey, std::uint64_t at) {
  request.wr.wr.rdma.rkey = rkey;
  request.wr.wr.rdma.remote_addr = at;
}
void operands(Request& request, std::uint32_t rkey, std::uint64_t at, std::uint64_t compare, std::uint64_t swap) {
  request.wr.wr.atomic.rkey = rkey;
  request.wr.wr.atomic.remote_addr = at;
  request.wr.wr.atomic.compare_add = compare;
  request.wr.wr.atomic.swap = swap;
}

void name(ibv_qp_ex* requests, ibv_ah* handle, std::uint32_t number, std::uint64_t key) {
  Request& request = last(requests);
  const std::lock_guard lock(standin_mutex);
  request.path = handles.at(handle);
  request.number = number;
  request.key = key;
}

void fill(Made& made, std::uint64_t ops, int (*complete)(ibv_qp_ex*)) {
  ibv_qp_ex& to = made.requests;
  to.wr_start = [](ibv_qp_ex* it) { made_of(it)->batch.clear(); };
  to.wr_complete = complete;
  to.wr_abort = [](ibv_qp_ex* it) { made_of(it)->batch.clear(); };
  // What was not asked for at creation is not there.
  if (ops & IBV_QP_EX_WITH_SEND) to.wr_send = [](ibv_qp_ex* it) { begin(it, IBV_WR_SEND); };
  if (ops & IBV_QP_EX_WITH_SEND_WITH_IMM)
    to.wr_send_imm = [](ibv_qp_ex* it, __be32 data) { begin(it, IBV_WR_SEND_WITH_IMM).wr.imm_data = data; };
  if (ops & IBV_QP_EX_WITH_RDMA_WRITE)
    to.wr_rdma_write = [](ibv_qp_ex* it, std::uint32_t rkey, std::uint64_t at) {
      remote(begin(it, IBV_WR_RDMA_WRITE), rkey, at);
    };
  if (ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM) {
    to.wr_rdma_write_imm = [](ibv_qp_ex* it, std::uint32_t rkey, std::uint64_t at, __be32 data) {
      remote(begin(it, IBV_WR_RDMA_WRITE_WITH_IMM), rkey, at);
      last(it).wr.imm_data = data;
    };
  }
  if (ops & IBV_QP_EX_WITH_RDMA_READ)
    to.wr_rdma_read = [](ibv_qp_ex* it, std::uint32_t rkey, std::uint64_t at) {
      remote(begin(it, IBV_WR_RDMA_READ), rkey, at);
    };
  if (ops & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD) {
    to.wr_atomic_fetch_add = [](ibv_qp_ex* it, std::uint32_t rkey, std::uint64_t at, std::uint64_t add) {
      operands(begin(it, IBV_WR_ATOMIC_FETCH_AND_ADD), rkey, at, add, 0);
    };
  }
  if (ops & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP) {
    to.wr_atomic_cmp_swp = [](ibv_qp_ex* it, std::uint32_t rkey, std::uint64_t at, std::uint64_t compare,
                              std::uint64_t swap) {
      operands(begin(it, IBV_WR_ATOMIC_CMP_AND_SWP), rkey, at, compare, swap);
    };
  }
  to.wr_set_sge_list = [](ibv_qp_ex* it, std::size_t count, const ibv_sge* pieces) {
    last(it).pieces.assign(pieces, pieces + count);
  };
  to.wr_set_inline_data_list = [](ibv_qp_ex* it, std::size_t count, const ibv_data_buf* pieces) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto* from = static_cast<const std::byte*>(pieces[i].addr);
      last(it).inlined.insert(last(it).inlined.end(), from, from + pieces[i].length);
    }
  };
  if (made.role == Role::kSrd)
    to.wr_set_ud_addr = [](ibv_qp_ex* it, ibv_ah* handle, std::uint32_t number, std::uint32_t key) {
      name(it, handle, number, key);
    };
}

}  // namespace
