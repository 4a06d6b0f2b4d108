#include "mlx5/hand.h"

#include <dlfcn.h>
#include <endian.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

namespace softnic_test {
namespace {

using Clock = std::chrono::steady_clock;

template <typename F>
void find(void* library, const char* name, const char* version, F*& function) {
  function = reinterpret_cast<F*>(::dlvsym(library, name, version));
  if (function == nullptr) ADD_FAILURE() << name << ": " << ::dlerror();
  EXPECT_EQ(::dlsym(library, name), reinterpret_cast<void*>(function)) << name;
}

}  // namespace

const Mlx5Library& Mlx5Library::get() {
  static const Mlx5Library library = [] {
    Mlx5Library found{};
    void* const handle = ::dlopen("libmlx5.so.1", RTLD_NOW);
    if (handle == nullptr) {
      ADD_FAILURE() << ::dlerror();
      return found;
    }
    find(handle, "mlx5dv_is_supported", "MLX5_1.8", found.is_supported);
    find(handle, "mlx5dv_query_device", "MLX5_1.0", found.query_device);
    find(handle, "mlx5dv_init_obj", "MLX5_1.2", found.init_obj);
    find(handle, "mlx5dv_create_qp", "MLX5_1.3", found.create_qp);
    find(handle, "mlx5dv_devx_umem_reg", "MLX5_1.7", found.umem_reg);
    find(handle, "mlx5dv_devx_umem_reg_ex", "MLX5_1.19", found.umem_reg_ex);
    find(handle, "mlx5dv_devx_umem_dereg", "MLX5_1.7", found.umem_dereg);
    find(handle, "mlx5dv_devx_alloc_uar", "MLX5_1.7", found.alloc_uar);
    find(handle, "mlx5dv_devx_free_uar", "MLX5_1.7", found.free_uar);
    find(handle, "mlx5dv_devx_query_eqn", "MLX5_1.7", found.query_eqn);
    find(handle, "mlx5dv_devx_obj_create", "MLX5_1.7", found.obj_create);
    find(handle, "mlx5dv_devx_obj_query", "MLX5_1.7", found.obj_query);
    find(handle, "mlx5dv_devx_obj_modify", "MLX5_1.7", found.obj_modify);
    find(handle, "mlx5dv_devx_obj_destroy", "MLX5_1.7", found.obj_destroy);
    find(handle, "mlx5dv_devx_general_cmd", "MLX5_1.7", found.general_cmd);
    find(handle, "mlx5dv_devx_qp_query", "MLX5_1.8", found.qp_query);
    find(handle, "mlx5dv_devx_create_event_channel", "MLX5_1.11", found.create_event_channel);
    find(handle, "mlx5dv_devx_destroy_event_channel", "MLX5_1.11", found.destroy_event_channel);
    find(handle, "mlx5dv_devx_subscribe_devx_event", "MLX5_1.11", found.subscribe_event);
    find(handle, "mlx5dv_devx_get_event", "MLX5_1.11", found.get_event);
    return found;
  }();
  return library;
}

HandCq::HandCq(ibv_cq* cq) {
  mlx5dv_obj object{};
  object.cq.in = cq;
  object.cq.out = &rings_;
  EXPECT_EQ(Mlx5Library::get().init_obj(&object, MLX5DV_OBJ_CQ), 0);
}

const mlx5_cqe64& HandCq::current() const {
  auto* cqes = static_cast<mlx5_cqe64*>(rings_.buf);
  return cqes[consumer_ & (rings_.cqe_cnt - 1)];
}

std::uint32_t last_word(const mlx5_cqe64& cqe) {
  constexpr std::size_t kAt = offsetof(mlx5_cqe64, wqe_counter);
  static_assert(kAt + sizeof(std::uint32_t) == sizeof cqe && offsetof(mlx5_cqe64, op_own) == sizeof cqe - 1);
  auto* const word = reinterpret_cast<std::uint32_t*>(reinterpret_cast<std::uintptr_t>(&cqe) + kAt);
  return be32toh(std::atomic_ref(*word).load(std::memory_order_acquire));
}

bool HandCq::ready() const {
  const std::uint32_t word = last_word(current()) & 0xff;
  return word >> 4 != MLX5_CQE_INVALID && (word & MLX5_CQE_OWNER_MASK) == ((consumer_ & rings_.cqe_cnt) != 0 ? 1 : 0);
}

std::optional<mlx5_cqe64> HandCq::next() {
  const auto limit = Clock::now() + std::chrono::seconds(5);
  while (!ready()) {
    if (Clock::now() > limit) return std::nullopt;
    ::sched_yield();
  }
  const mlx5_cqe64 found = current();
  ++consumer_;
  if (tells_) std::atomic_ref(rings_.dbrec[0]).store(htobe32(consumer_ & 0xffffff), std::memory_order_release);
  return found;
}

bool HandCq::stays_empty() {
  const auto limit = Clock::now() + std::chrono::milliseconds(20);
  while (Clock::now() < limit) {
    if (ready()) return false;
    ::sched_yield();
  }
  return true;
}

HandQp::HandQp(ibv_qp* qp) : number_(qp->qp_num) {
  mlx5dv_obj object{};
  object.qp.in = qp;
  object.qp.out = &rings_;
  EXPECT_EQ(Mlx5Library::get().init_obj(&object, MLX5DV_OBJ_QP), 0);
}

std::uint8_t* HandQp::block(std::uint16_t index) const {
  return static_cast<std::uint8_t*>(rings_.sq.buf) + std::size_t{index & (rings_.sq.wqe_cnt - 1)} * MLX5_SEND_WQE_BB;
}

std::uint16_t HandQp::write_bytes(const std::uint8_t* bytes, std::size_t size) {
  last_ = producer_;
  for (std::size_t at = 0; at < size; at += MLX5_SEND_WQE_BB, ++producer_) {
    std::memcpy(block(producer_), bytes + at, std::min<std::size_t>(size - at, MLX5_SEND_WQE_BB));
  }
  return last_;
}

std::uint16_t HandQp::write(const Wqe& wqe) {
  std::vector<std::uint8_t> bytes(sizeof(mlx5_wqe_ctrl_seg));
  const auto add = [&](const void* segment, std::size_t size) {
    const auto* from = static_cast<const std::uint8_t*>(segment);
    bytes.insert(bytes.end(), from, from + size);
  };
  const bool atomic = wqe.opcode == MLX5_OPCODE_ATOMIC_CS || wqe.opcode == MLX5_OPCODE_ATOMIC_FA;
  if (wqe.opcode == MLX5_OPCODE_RDMA_WRITE || wqe.opcode == MLX5_OPCODE_RDMA_WRITE_IMM ||
      wqe.opcode == MLX5_OPCODE_RDMA_READ || atomic) {
    const mlx5_wqe_raddr_seg remote{htobe64(wqe.remote), htobe32(wqe.rkey), 0};
    add(&remote, sizeof remote);
  }
  if (atomic) {
    const mlx5_wqe_atomic_seg words{htobe64(wqe.swap_add), htobe64(wqe.compare)};
    add(&words, sizeof words);
  }
  for (const ibv_sge& sge : wqe.sges) {
    mlx5_wqe_data_seg data;
    mlx5dv_set_data_seg(&data, sge.length, sge.lkey, sge.addr);
    add(&data, sizeof data);
  }
  if (!wqe.inlined.empty()) {
    const std::uint32_t head = htobe32(MLX5_INLINE_SEG | static_cast<std::uint32_t>(wqe.inlined.size()));
    add(&head, sizeof head);
    add(wqe.inlined.data(), wqe.inlined.size());
    bytes.resize((bytes.size() + 15) / 16 * 16);
  }
  auto* control = reinterpret_cast<mlx5_wqe_ctrl_seg*>(bytes.data());
  mlx5dv_set_ctrl_seg(control, producer_, wqe.opcode, 0, number_, wqe.flags,
                      static_cast<std::uint8_t>(bytes.size() / 16), 0, wqe.imm);
  return write_bytes(bytes.data(), bytes.size());
}

void HandQp::update_record() {
  std::atomic_ref(rings_.dbrec[MLX5_SND_DBR]).store(htobe32(producer_), std::memory_order_release);
}

void HandQp::ring_doorbell() {
  std::uint64_t word;
  std::memcpy(&word, block(last_), sizeof word);
  std::atomic_ref(*static_cast<std::uint64_t*>(rings_.bf.reg)).store(word, std::memory_order_release);
}

std::uint16_t HandQp::post(const Wqe& wqe) {
  const std::uint16_t place = write(wqe);
  ring();
  return place;
}

void HandQp::post_receive(std::initializer_list<ibv_sge> sges) {
  auto* base =
      static_cast<std::uint8_t*>(rings_.rq.buf) + std::size_t{receives_ & (rings_.rq.wqe_cnt - 1)} * rings_.rq.stride;
  auto* segment = reinterpret_cast<mlx5_wqe_data_seg*>(base);
  for (const ibv_sge& sge : sges) mlx5dv_set_data_seg(segment++, sge.length, sge.lkey, sge.addr);
  if (reinterpret_cast<std::uint8_t*>(segment) < base + rings_.rq.stride)
    mlx5dv_set_data_seg(segment, 0, MLX5_INVALID_LKEY, 0);
  ++receives_;
  std::atomic_ref(rings_.dbrec[MLX5_RCV_DBR]).store(htobe32(receives_), std::memory_order_release);
}

std::uint8_t cqe_opcode(const mlx5_cqe64& cqe) { return static_cast<std::uint8_t>(cqe.op_own >> 4); }
std::uint8_t syndrome(const mlx5_cqe64& cqe) { return reinterpret_cast<const mlx5_err_cqe&>(cqe).syndrome; }
std::uint16_t wqe_counter(const mlx5_cqe64& cqe) { return be16toh(cqe.wqe_counter); }
std::uint32_t cqe_qpn(const mlx5_cqe64& cqe) { return be32toh(cqe.sop_drop_qpn) & 0xffffff; }
std::uint8_t wqe_opcode(const mlx5_cqe64& cqe) { return static_cast<std::uint8_t>(be32toh(cqe.sop_drop_qpn) >> 24); }

}  // namespace softnic_test
