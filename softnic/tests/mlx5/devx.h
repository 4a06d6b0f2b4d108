#pragma once

// DEVX: queues in memory of the program's, made and moved on by commands, as GPUNetIO does it. Places of fields as in
// the Linux kernel's mlx5_ifc.h.

#include <endian.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>

#include "mlx5/hand.h"

namespace softnic_test {

struct Command {
  explicit Command(std::uint32_t opcode, std::size_t bytes = 512) : in(bytes), out(4096) { set(0, 16, opcode); }
  void set(std::uint32_t at, std::uint32_t width, std::uint64_t value) {
    for (std::uint32_t i = width; i > 0; --i, value >>= 1) {
      const std::uint32_t bit = at + i - 1;
      const auto mask = static_cast<std::uint8_t>(0x80u >> (bit & 7));
      in[bit / 8] = static_cast<std::uint8_t>((value & 1) != 0 ? in[bit / 8] | mask : in[bit / 8] & ~mask);
    }
  }
  std::uint64_t get(std::uint32_t at, std::uint32_t width) const {
    std::uint64_t value = 0;
    for (std::uint32_t i = 0; i < width; ++i) value = value << 1 | (out[(at + i) / 8] >> (7 - (at + i) % 8) & 1u);
    return value;
  }
  std::uint32_t status() const { return out[0]; }
  mlx5dv_devx_obj* create(ibv_context* context) {
    return Mlx5Library::get().obj_create(context, in.data(), in.size(), out.data(), out.size());
  }
  int modify(mlx5dv_devx_obj* object) {
    return Mlx5Library::get().obj_modify(object, in.data(), in.size(), out.data(), out.size());
  }
  int query(mlx5dv_devx_obj* object) {
    return Mlx5Library::get().obj_query(object, in.data(), in.size(), out.data(), out.size());
  }
  int run(ibv_context* context) {
    return Mlx5Library::get().general_cmd(context, in.data(), in.size(), out.data(), out.size());
  }
  std::vector<std::uint8_t> in;
  std::vector<std::uint8_t> out;
};

constexpr std::uint32_t kQpc = 192, kPath = kQpc + 192, kCqc = 128, kRmpc = 256, kRmpWq = kRmpc + 384;

/// Memory for queues, and its umem.
class Umem {
 public:
  using Register = std::function<mlx5dv_devx_umem*(ibv_context* context, void* memory, std::size_t bytes)>;
  static mlx5dv_devx_umem* by_address(ibv_context* context, void* memory, std::size_t bytes) {
    return Mlx5Library::get().umem_reg(context, memory, bytes, IBV_ACCESS_LOCAL_WRITE);
  }
  Umem(ibv_context* context, std::size_t bytes, const Register& how = by_address)
      : bytes_(bytes),
        data_(static_cast<std::uint8_t*>(
            ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        umem_(how(context, data_, bytes)) {
    EXPECT_NE(umem_, nullptr);
  }
  ~Umem() {
    EXPECT_EQ(Mlx5Library::get().umem_dereg(umem_), 0);
    ::munmap(data_, bytes_);
  }
  Umem(const Umem&) = delete;
  Umem& operator=(const Umem&) = delete;
  std::uint8_t* data() const { return data_; }
  std::uint32_t id() const { return umem_->umem_id; }

 private:
  std::size_t bytes_;
  std::uint8_t* data_;
  mlx5dv_devx_umem* umem_;
};

/// A CQ and a QP by commands, in one umem: CQEs, receives, sends, and doorbell records.
class DevxEnd {
 public:
  static constexpr std::uint32_t kCqes = 64, kBlocks = 64, kReceives = 16, kReceiveBytes = 32;
  static constexpr std::size_t kRingAt = 4096, kRecordsAt = 16384, kBytes = 20480;

  explicit DevxEnd(const std::string& device = "mlx0", bool collapsed = false, bool overrun_ignored = false,
                   const Umem::Register& how = Umem::by_address, std::uint32_t log_cqes = 6)
      : context(open_device(device)), pd(ibv_alloc_pd(context.get())), memory(pd.get(), 65536),
        umem(std::make_unique<Umem>(context.get(), kBytes, how)), uar(Mlx5Library::get().alloc_uar(context.get(), 0)) {
    EXPECT_NE(uar, nullptr);
    for (std::uint32_t i = 0; i < kCqes; ++i) cqes()[i].op_own = MLX5_CQE_INVALID << 4;
    create_cq(collapsed, overrun_ignored, log_cqes);
    create_qp();
  }
  ~DevxEnd() {
    const Mlx5Library& library = Mlx5Library::get();
    if (qp != nullptr) {
      EXPECT_EQ(library.obj_destroy(qp), 0);
    }
    if (cq != nullptr) {
      EXPECT_EQ(library.obj_destroy(cq), 0);
    }
    library.free_uar(uar);
  }
  mlx5_cqe64* cqes() const { return reinterpret_cast<mlx5_cqe64*>(umem->data()); }
  __be32* record(unsigned which) const { return reinterpret_cast<__be32*>(umem->data() + kRecordsAt + which * 64); }

  void create_cq(bool collapsed, bool overrun_ignored, std::uint32_t log_cqes) {
    Command command(0x400);
    command.set(kCqc + 11, 1, collapsed);
    command.set(kCqc + 14, 1, overrun_ignored);
    command.set(kCqc + 32, 32, umem->id());
    command.set(kCqc + 99, 5, log_cqes);
    command.set(kCqc + 104, 24, uar->page_id);
    command.set(kCqc + 448, 64, kRecordsAt);
    command.set(640, 64, 0);
    command.set(704, 32, umem->id());
    cq = command.create(context.get());
    ASSERT_NE(cq, nullptr) << command.status();
    cqn = static_cast<std::uint32_t>(command.get(72, 24));
  }
  std::uint32_t pdn() const {
    mlx5dv_pd numbered{};
    mlx5dv_obj object{};
    object.pd.in = pd.get();
    object.pd.out = &numbered;
    EXPECT_EQ(Mlx5Library::get().init_obj(&object, MLX5DV_OBJ_PD), 0);
    return numbered.pdn;
  }
  Command qp_command() const {
    Command command(0x500);
    command.set(kQpc + 40, 24, pdn());
    command.set(kQpc + 73, 4, 4);
    command.set(kQpc + 77, 3, 1);
    command.set(kQpc + 81, 4, 6);
    command.set(kQpc + 104, 24, uar->page_id);
    command.set(kQpc + 136, 24, 0x1234);
    command.set(kQpc + 1000, 24, cqn);
    command.set(kQpc + 1256, 24, cqn);
    command.set(kQpc + 1280, 64, kRecordsAt + 64);
    command.set(kQpc + 1824, 32, umem->id());
    command.set(2048, 64, kRingAt);
    command.set(2112, 32, umem->id());
    return command;
  }
  void create_qp() {
    Command command = qp_command();
    qp = command.create(context.get());
    ASSERT_NE(qp, nullptr) << command.status();
    qpn = static_cast<std::uint32_t>(command.get(72, 24));
  }
  ibv_gid gid() const {
    ibv_gid found{};
    EXPECT_EQ(ibv_query_gid(context.get(), 1, kGidIndex, &found), 0);
    return found;
  }
  int to(std::uint32_t opcode, const std::function<void(Command&)>& fill = {}) const {
    Command command(opcode);
    command.set(72, 24, qpn);
    if (fill) fill(command);
    return command.modify(qp);
  }
  int to_init() const {
    return to(0x502, [](Command& it) {
      it.set(kPath + 296, 8, 1);
      for (const std::uint32_t right : {1168u, 1169u, 1170u}) it.set(kQpc + right, 1, 1);
    });
  }
  int to_rtr(const DevxEnd& peer) const {
    return to(0x503, [&](Command& it) {
      it.set(kQpc + 64, 3, IBV_MTU_1024);
      it.set(kQpc + 168, 24, peer.qpn);
      it.set(kQpc + 1160, 3, 2);
      it.set(kQpc + 1187, 5, 1);
      it.set(kPath + 72, 8, kGidIndex);
      it.set(kPath + 88, 8, 64);
      const ibv_gid there = peer.gid();
      std::memcpy(it.in.data() + (kPath + 128) / 8, there.raw, sizeof there.raw);
    });
  }
  int to_rts() const {
    return to(0x504, [](Command& it) {
      it.set(kPath + 64, 5, 14);
      it.set(kQpc + 904, 3, 2);
      it.set(kQpc + 909, 3, 7);
      it.set(kQpc + 912, 3, 7);
    });
  }
  std::uint32_t state() const {
    Command command(0x50b);
    command.set(72, 24, qpn);
    EXPECT_EQ(command.query(qp), 0);
    EXPECT_EQ(command.get(kQpc + 136, 24), 0x1234u);
    return static_cast<std::uint32_t>(command.get(kQpc, 4));
  }
  HandQp hand() const {
    mlx5dv_qp rings{};
    rings.dbrec = record(1);
    rings.rq = {umem->data() + kRingAt, kReceives, kReceiveBytes};
    rings.sq = {umem->data() + kRingAt + kReceives * kReceiveBytes, kBlocks, 64};
    rings.bf = {uar->reg_addr, 256};
    return {rings, qpn};
  }
  HandCq hand_cq() const {
    mlx5dv_cq rings{};
    rings.buf = cqes();
    rings.dbrec = record(0);
    rings.cqe_cnt = kCqes;
    rings.cqe_size = 64;
    return HandCq(rings);
  }

  Owned<ibv_context> context;
  Owned<ibv_pd> pd;
  Memory memory;
  std::unique_ptr<Umem> umem;
  mlx5dv_devx_uar* uar;
  mlx5dv_devx_obj* cq = nullptr;
  mlx5dv_devx_obj* qp = nullptr;
  std::uint32_t cqn = 0;
  std::uint32_t qpn = 0;
};

/// Of a command that is good but for what `spoil` does to it.
inline void expect_refused(const DevxEnd& end, Command command, const std::function<void(Command&)>& spoil) {
  spoil(command);
  errno = 0;
  EXPECT_EQ(command.create(end.context.get()), nullptr);
  EXPECT_EQ(errno, EREMOTEIO);
  EXPECT_NE(command.status(), 0u);
}

inline void connect(const DevxEnd& one, const DevxEnd& other) {
  for (const DevxEnd* it : {&one, &other}) ASSERT_EQ(it->to_init(), 0);
  ASSERT_EQ(one.to_rtr(other), 0);
  ASSERT_EQ(other.to_rtr(one), 0);
  for (const DevxEnd* it : {&one, &other}) ASSERT_EQ(it->to_rts(), 0);
}

}  // namespace softnic_test
