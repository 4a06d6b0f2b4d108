#pragma once

#include <infiniband/mlx5dv.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "fixture.h"

/// Rings in mlx5's format, driven by hand as a GPU's kernel does it: by what mlx5dv.h says, and by nothing of
/// the device's own.
namespace softnic_test {

/// The functions of libmlx5.so.1, loaded as programs do.
/// mlx5dv_devx_umem_in, which older headers do not have.
struct UmemIn {
  void* address;  ///< an offset, with a dma-buf
  std::size_t bytes;
  std::uint32_t access;
  std::uint64_t page_sizes;
  std::uint64_t comp_mask;  ///< 1: by the dma-buf
  int dmabuf;
};

struct Mlx5Library {
  static const Mlx5Library& get();
  bool (*is_supported)(ibv_device* device);
  int (*query_device)(ibv_context* context, mlx5dv_context* attributes);
  int (*init_obj)(mlx5dv_obj* objects, std::uint64_t types);
  mlx5dv_devx_umem* (*umem_reg)(ibv_context* context, void* address, std::size_t bytes, std::uint32_t access);
  mlx5dv_devx_umem* (*umem_reg_ex)(ibv_context* context, UmemIn* in);
  int (*umem_dereg)(mlx5dv_devx_umem* umem);
  mlx5dv_devx_uar* (*alloc_uar)(ibv_context* context, std::uint32_t flags);
  void (*free_uar)(mlx5dv_devx_uar* uar);
  int (*query_eqn)(ibv_context* context, std::uint32_t vector, std::uint32_t* number);
  mlx5dv_devx_obj* (*obj_create)(ibv_context* context, const void* in, std::size_t in_size, void* out,
                                 std::size_t out_size);
  int (*obj_query)(mlx5dv_devx_obj* object, const void* in, std::size_t in_size, void* out, std::size_t out_size);
  int (*obj_modify)(mlx5dv_devx_obj* object, const void* in, std::size_t in_size, void* out, std::size_t out_size);
  int (*obj_destroy)(mlx5dv_devx_obj* object);
  int (*general_cmd)(ibv_context* context, const void* in, std::size_t in_size, void* out, std::size_t out_size);
  ibv_qp* (*create_qp)(ibv_context* context, ibv_qp_init_attr_ex* attributes, mlx5dv_qp_init_attr* more);
  int (*qp_query)(ibv_qp* qp, const void* in, std::size_t in_size, void* out, std::size_t out_size);
  mlx5dv_devx_event_channel* (*create_event_channel)(ibv_context* context, int flags);
  void (*destroy_event_channel)(mlx5dv_devx_event_channel* channel);
  int (*subscribe_event)(mlx5dv_devx_event_channel* channel, mlx5dv_devx_obj* object, std::uint16_t bytes,
                         std::uint16_t* events, std::uint64_t cookie);
  ssize_t (*get_event)(mlx5dv_devx_event_channel* channel, void* event, std::size_t bytes);
};

/// A CQ as its CQEs.
class HandCq {
 public:
  explicit HandCq(ibv_cq* cq);
  explicit HandCq(const mlx5dv_cq& rings) : rings_(rings) {}
  /// The next CQE, within five seconds; none after that. Says that it was polled, by the doorbell record.
  std::optional<mlx5_cqe64> next();
  bool stays_empty();
  /// The CQE at the consumer's place, owned by software or not.
  const mlx5_cqe64& current() const;
  bool ready() const;
  void tell(bool whether) { tells_ = whether; }
  std::uint32_t consumer() const { return consumer_; }
  const mlx5dv_cq& rings() const { return rings_; }

 private:
  mlx5dv_cq rings_{};
  std::uint32_t consumer_ = 0;
  bool tells_ = true;
};

struct Wqe {
  std::uint8_t opcode = MLX5_OPCODE_RDMA_WRITE;
  std::uint8_t flags = MLX5_WQE_CTRL_CQ_UPDATE;
  std::uint32_t imm = 0;  ///< as it stands in the WQE
  std::uint64_t remote = 0;
  std::uint32_t rkey = 0;
  std::vector<ibv_sge> sges;
  std::string inlined;
  std::uint64_t swap_add = 0;
  std::uint64_t compare = 0;
};

/// A QP as its rings.
class HandQp {
 public:
  explicit HandQp(ibv_qp* qp);
  HandQp(const mlx5dv_qp& rings, std::uint32_t number) : rings_(rings), number_(number) {}

  /// Writes a WQE; the index of its first block.
  std::uint16_t write(const Wqe& wqe);
  /// The same of any bytes, a multiple of 16.
  std::uint16_t write_bytes(const std::uint8_t* bytes, std::size_t size);
  /// As write(), and rings.
  std::uint16_t post(const Wqe& wqe);
  void update_record();
  /// Of the WQE that was written last.
  void ring_doorbell();
  void ring() {
    update_record();
    ring_doorbell();
  }
  void post_receive(std::initializer_list<ibv_sge> sges);

  std::uint16_t producer() const { return producer_; }
  void set_producer(std::uint16_t place) { producer_ = place; }
  const mlx5dv_qp& rings() const { return rings_; }
  std::uint8_t* block(std::uint16_t index) const;
  std::uint32_t number() const { return number_; }

 private:
  mlx5dv_qp rings_{};
  std::uint32_t number_;
  std::uint16_t producer_ = 0;
  std::uint16_t last_ = 0;
  std::uint16_t receives_ = 0;
};

/// Ends on devices with mlx5=on; only what asks for a completion gets one.
inline EndOptions mlx5_end(const std::string& device = "mlx0") {
  EndOptions options;
  options.device = device;
  options.signal_all = false;
  return options;
}

/// Both ends connected, and the client's rings.
struct HandPair {
  explicit HandPair(const EndOptions& client = mlx5_end(), const EndOptions& server = mlx5_end())
      : pair(client, server), qp(pair.client.qp.get()), cq(pair.client.send_cq.get()) {}
  Wqe write(std::size_t offset, std::uint32_t length) {
    Wqe wqe;
    wqe.remote = pair.server.memory->address(offset);
    wqe.rkey = pair.server.memory->mr()->rkey;
    wqe.sges = {pair.client.memory->sge(offset, length)};
    return wqe;
  }
  Wqe request(std::uint8_t opcode, std::size_t offset, std::uint32_t length) {
    Wqe wqe = write(offset, length);
    wqe.opcode = opcode;
    return wqe;
  }
  Pair pair;
  HandQp qp;
  HandCq cq;
};

/// The counter of the WQE (the upper half) and the byte of the owner, which the device writes at once, last.
std::uint32_t last_word(const mlx5_cqe64& cqe);
std::uint8_t cqe_opcode(const mlx5_cqe64& cqe);
std::uint8_t syndrome(const mlx5_cqe64& cqe);
std::uint16_t wqe_counter(const mlx5_cqe64& cqe);
std::uint32_t cqe_qpn(const mlx5_cqe64& cqe);
/// Of the WQE that a request's CQE completes.
std::uint8_t wqe_opcode(const mlx5_cqe64& cqe);

}  // namespace softnic_test
