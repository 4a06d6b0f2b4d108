// Rings in mlx5's format: WQEs written by hand, completed by CQEs that are polled by hand.

#include <endian.h>

#include <cstring>

#include "mlx5/hand.h"

namespace softnic_test {
namespace {

/// Both ends on devices with mlx5=on, connected, and the client's rings.
TEST(SoftnicMlx5, TheLibraryKnowsItsDevices) {
  const Mlx5Library& library = Mlx5Library::get();
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  for (int i = 0; i < count; ++i) {
    const std::string name = ibv_get_device_name(list[i]);
    EXPECT_EQ(library.is_supported(list[i]), name.starts_with("mlx")) << name;
  }
  ibv_free_device_list(list);
  const auto context = open_device("mlx0");
  mlx5dv_context attributes{};
  attributes.comp_mask = ~std::uint64_t{0};
  EXPECT_EQ(library.query_device(context.get(), &attributes), 0);
  EXPECT_EQ(attributes.comp_mask & MLX5DV_CONTEXT_MASK_CQE_COMPRESION, 0u);
  EXPECT_NE(attributes.flags & MLX5DV_CONTEXT_FLAGS_CQE_V1, 0u);
  const auto ordinary = open_device("soft0");
  EXPECT_EQ(library.query_device(ordinary.get(), &attributes), EOPNOTSUPP);
}

TEST(SoftnicMlx5, OrdinaryDevicesHaveNoRings) {
  EndOptions options;
  options.device = "soft0";
  End end(options);
  mlx5dv_qp rings{};
  mlx5dv_obj object{};
  object.qp.in = end.qp.get();
  object.qp.out = &rings;
  EXPECT_EQ(Mlx5Library::get().init_obj(&object, MLX5DV_OBJ_QP), EOPNOTSUPP);
}

TEST(SoftnicMlx5, RingsAreAsLibmlx5LaysThemOut) {
  HandPair hand;
  const mlx5dv_qp& rings = hand.qp.rings();
  EXPECT_EQ(rings.sq.stride, static_cast<std::uint32_t>(MLX5_SEND_WQE_BB));
  EXPECT_EQ(rings.sq.wqe_cnt & (rings.sq.wqe_cnt - 1), 0u);
  EXPECT_GE(rings.sq.wqe_cnt, 64u);
  EXPECT_GE(rings.rq.wqe_cnt, 64u);
  EXPECT_EQ(rings.rq.stride & 15, 0u);
  EXPECT_EQ(rings.bf.size, 256u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(rings.bf.reg) & 0x9ff, 0x800u);
  const mlx5dv_cq& cq = hand.cq.rings();
  EXPECT_EQ(cq.cqe_size, 64u);
  EXPECT_GE(cq.cqe_cnt, 256u);
  EXPECT_EQ(cqe_opcode(hand.cq.current()), MLX5_CQE_INVALID);
}

TEST(SoftnicMlx5, AWriteByHand) {
  HandPair hand;
  hand.pair.client.memory->fill(3);
  const std::uint16_t place = hand.qp.post(hand.write(64, 1000));
  const auto done = hand.cq.next();
  ASSERT_TRUE(done);
  EXPECT_EQ(cqe_opcode(*done), MLX5_CQE_REQ);
  EXPECT_EQ(wqe_opcode(*done), MLX5_OPCODE_RDMA_WRITE);
  EXPECT_EQ(wqe_counter(*done), place);
  EXPECT_EQ(cqe_qpn(*done), hand.qp.number());
  EXPECT_TRUE(hand.pair.server.memory->holds(3, 64, 1000));
  EXPECT_TRUE(hand.cq.stays_empty());
}

TEST(SoftnicMlx5, NothingHappensBeforeTheDoorbell) {
  HandPair hand;
  hand.pair.client.memory->fill(4);
  hand.qp.write(hand.write(0, 8));
  hand.qp.update_record();
  EXPECT_TRUE(hand.cq.stays_empty());
  hand.qp.ring_doorbell();
  EXPECT_TRUE(hand.cq.next());
}

}  // namespace
}  // namespace softnic_test
