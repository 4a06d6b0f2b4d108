#include <fcntl.h>

#include "mlx5/devx.h"

namespace softnic_test {
namespace {

TEST(SoftnicMlx5Devx, QueuesInTheProgramsMemory) {
  DevxEnd client, server;
  EXPECT_EQ(client.state(), 0u);
  connect(client, server);
  EXPECT_EQ(client.state(), 3u);
  HandQp qp = client.hand();
  HandQp other = server.hand();
  HandCq done = client.hand_cq();
  HandCq arrived = server.hand_cq();
  client.memory.fill(3);
  Wqe write;
  write.remote = server.memory.address(100);
  write.rkey = server.memory.mr()->rkey;
  write.sges = {client.memory.sge(100, 1000)};
  for (int i = 0; i < 200; ++i) {
    const std::uint16_t place = qp.post(write);
    const auto cqe = done.next();
    ASSERT_TRUE(cqe);
    ASSERT_EQ(cqe_opcode(*cqe), MLX5_CQE_REQ) << int(syndrome(*cqe));
    ASSERT_EQ(wqe_counter(*cqe), place);
  }
  EXPECT_TRUE(server.memory.holds(3, 100, 1000));
  other.post_receive({server.memory.sge(8192, 100)});
  Wqe send;
  send.opcode = MLX5_OPCODE_SEND_IMM;
  send.imm = 0x11223344;
  send.sges = {client.memory.sge(0, 100)};
  qp.post(send);
  ASSERT_TRUE(done.next());
  const auto got = arrived.next();
  ASSERT_TRUE(got);
  EXPECT_EQ(cqe_opcode(*got), MLX5_CQE_RESP_SEND_IMM);
  EXPECT_EQ(be32toh(got->byte_cnt), 100u);
  EXPECT_EQ(std::memcmp(client.memory.data(), server.memory.data() + 8192, 100), 0);
}

/// Waits until the only CQE is that of the WQE at `place`.
void expect_collapsed(const mlx5_cqe64& cqe, std::uint16_t place) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  std::uint32_t word = 0;
  do {
    ASSERT_LT(std::chrono::steady_clock::now(), limit) << place;
    word = last_word(cqe);
  } while (word >> 16 != place || (word & 0xff) >> 4 == MLX5_CQE_INVALID);
  ASSERT_EQ((word & 0xff) >> 4, MLX5_CQE_REQ);
}

TEST(SoftnicMlx5Devx, ACollapsedCqHasOneCqe) {
  for (const std::uint32_t log_cqes : {6u, 0u}) {
    DevxEnd client("mlx0", true, true, Umem::by_address, log_cqes), server;
    connect(client, server);
    HandQp qp = client.hand();
    Wqe write;
    write.remote = server.memory.address();
    write.rkey = server.memory.mr()->rkey;
    write.sges = {client.memory.sge(0, 8)};
    // Nobody says what was polled, and many more than the CQ has.
    for (std::uint32_t i = 0; i < 5 * DevxEnd::kCqes; ++i) expect_collapsed(client.cqes()[0], qp.post(write));
    // And many at a time.
    std::uint16_t last = 0;
    for (std::uint32_t i = 0; i < DevxEnd::kBlocks; ++i) last = qp.write(write);
    qp.ring();
    expect_collapsed(client.cqes()[0], last);
    EXPECT_EQ(client.cqes()[1].op_own >> 4, MLX5_CQE_INVALID);
    EXPECT_EQ(client.state(), 3u);
  }
}

TEST(SoftnicMlx5Devx, StatesChangeAsTheCommandsSay) {
  DevxEnd client, server;
  connect(client, server);
  EXPECT_EQ(client.to(0x505), 0);
  EXPECT_EQ(client.to(0x507), 0);
  EXPECT_EQ(client.state(), 6u);
  EXPECT_EQ(client.to(0x50a), 0);
  EXPECT_EQ(client.state(), 0u);
  // Not from there.
  EXPECT_EQ(client.to_rts(), EREMOTEIO);
  EXPECT_EQ(client.to_init(), 0);
  EXPECT_EQ(client.to(0x50e), 0);
  EXPECT_EQ(client.state(), 1u);
}

TEST(SoftnicMlx5Devx, CapabilitiesAndAddresses) {
  const auto context = open_device("mlx0");
  Command caps(0x100, 16);
  caps.set(48, 16, 0 << 1 | 1);
  ASSERT_EQ(caps.run(context.get()), 0);
  EXPECT_EQ(caps.get(128 + 438, 2), 1u);
  EXPECT_EQ(caps.get(128 + 575, 1), 1u);
  EXPECT_EQ(caps.get(128 + 136, 8), 15u);
  EXPECT_EQ(caps.get(128 + 451, 5), 30u);
  Command roce(0x100, 16);
  roce.set(48, 16, 4 << 1 | 1);
  ASSERT_EQ(roce.run(context.get()), 0);
  EXPECT_EQ(roce.get(128 + 208, 16), 0xc000u);
  Command address(0x760, 16);
  address.set(64, 16, kGidIndex);
  ASSERT_EQ(address.run(context.get()), 0);
  ibv_gid gid{};
  ASSERT_EQ(ibv_query_gid(context.get(), 1, kGidIndex, &gid), 0);
  EXPECT_EQ(std::memcmp(address.out.data() + 16, gid.raw, sizeof gid.raw), 0);
  EXPECT_EQ(address.get(128 + 216, 8), 2u);
  Command lag(0x842, 16);
  EXPECT_EQ(lag.run(context.get()), 0);
  EXPECT_EQ(lag.get(128 + 29, 3), 0u);
  Command unknown(0x7ff, 16);
  errno = 0;
  EXPECT_EQ(unknown.run(context.get()), EREMOTEIO);
  EXPECT_EQ(errno, EREMOTEIO);
  EXPECT_EQ(unknown.status(), 2u);
  std::uint32_t queue = 99;
  EXPECT_EQ(Mlx5Library::get().query_eqn(context.get(), 0, &queue), 0);
  EXPECT_EQ(Mlx5Library::get().query_eqn(context.get(), 1000, &queue), EINVAL);
}

TEST(SoftnicMlx5Devx, QpsOfVerbsKnowNoCommand) {
  const HandPair pair;
  Command query(0x50b);
  EXPECT_EQ(Mlx5Library::get().qp_query(pair.pair.client.qp.get(), query.in.data(), query.in.size(), query.out.data(),
                                        query.out.size()),
            EOPNOTSUPP);
}

TEST(SoftnicMlx5Devx, QpsThatVerbsKnowAreMadeByMlx5sCallToo) {
  const End end({.device = "mlx0"});
  ibv_qp_init_attr_ex attributes{};
  attributes.send_cq = attributes.recv_cq = end.send_cq.get();
  attributes.cap = {16, 16, 1, 1, 0};
  attributes.qp_type = IBV_QPT_RC;
  attributes.comp_mask = IBV_QP_INIT_ATTR_PD;
  attributes.pd = end.pd.get();
  mlx5dv_qp_init_attr more{};
  for (mlx5dv_qp_init_attr* given : {static_cast<mlx5dv_qp_init_attr*>(nullptr), &more}) {
    ibv_qp* const qp = Mlx5Library::get().create_qp(end.context.get(), &attributes, given);
    ASSERT_NE(qp, nullptr) << std::strerror(errno);
    mlx5dv_qp rings{};
    mlx5dv_obj object{};
    object.qp.in = qp;
    object.qp.out = &rings;
    EXPECT_EQ(Mlx5Library::get().init_obj(&object, MLX5DV_OBJ_QP), 0);
    EXPECT_NE(rings.sq.buf, nullptr);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
  }
  attributes.qp_type = IBV_QPT_DRIVER;
  more.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC;
  more.dc_init_attr.dc_type = MLX5DV_DCTYPE_DCI;
  errno = 0;
  EXPECT_EQ(Mlx5Library::get().create_qp(end.context.get(), &attributes, &more), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST(SoftnicMlx5Devx, MemoryOfTheDeviceHasAnAddress) {
  const auto context = open_device("mlx0");
  ibv_alloc_dm_attr attr{};
  attr.length = 256;
  ibv_dm* const dm = ibv_alloc_dm(context.get(), &attr);
  ASSERT_NE(dm, nullptr);
  mlx5dv_dm shown{};
  mlx5dv_obj object{};
  object.dm.in = dm;
  object.dm.out = &shown;
  ASSERT_EQ(Mlx5Library::get().init_obj(&object, MLX5DV_OBJ_DM), 0);
  ASSERT_EQ(shown.length, 256u);
  std::memset(shown.buf, 7, 256);
  char found[256] = {};
  EXPECT_EQ(ibv_memcpy_from_dm(found, dm, 0, sizeof found), 0);
  EXPECT_EQ(std::memcmp(found, shown.buf, sizeof found), 0);
  EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST(SoftnicMlx5Devx, AChannelOfEventsHasNone) {
  DevxEnd end;
  const Mlx5Library& library = Mlx5Library::get();
  mlx5dv_devx_event_channel* const channel = library.create_event_channel(end.context.get(), 0);
  ASSERT_NE(channel, nullptr);
  std::uint16_t last_wqe_reached = 0x13;
  EXPECT_EQ(library.subscribe_event(channel, end.qp, sizeof last_wqe_reached, &last_wqe_reached, 1), 0);
  ASSERT_EQ(::fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
  ASSERT_EQ(end.to_init(), 0);
  ASSERT_EQ(end.to(0x507), 0);
  char event[64];
  EXPECT_EQ(library.get_event(channel, event, sizeof event), -1);
  EXPECT_EQ(errno, EAGAIN);
  const int fd = channel->fd;
  library.destroy_event_channel(channel);
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
  const auto ordinary = open_device("soft0");
  EXPECT_EQ(library.create_event_channel(ordinary.get(), 0), nullptr);
}

TEST(SoftnicMlx5Devx, WhatIsWrongIsRefused) {
  DevxEnd end;
  const auto refused = [&](const std::function<void(Command&)>& spoil) {
    expect_refused(end, end.qp_command(), spoil);
  };
  refused([](Command& it) { it.set(0, 16, 0x999); });                 // no such command
  refused([](Command& it) { it.set(kQpc + 40, 24, 0xabcdef); });      // PD
  refused([](Command& it) { it.set(kQpc + 1000, 24, 0xfff); });       // CQ
  refused([](Command& it) { it.set(kQpc + 104, 24, 0xffff); });       // UAR
  refused([](Command& it) { it.set(2112, 32, 0xffff); });             // umem
  refused([](Command& it) { it.set(2048, 64, DevxEnd::kBytes - 64); });   // beyond its end
  refused([](Command& it) { it.set(2048, 64, ~std::uint64_t{0} - 63); });
  refused([](Command& it) { it.set(2048, 64, 8); });                  // not on a block
  refused([](Command& it) { it.set(kQpc + 1280, 64, DevxEnd::kBytes); });
  refused([](Command& it) { it.set(kQpc + 8, 8, 7); });               // service type
  refused([](Command& it) { it.set(2112, 32, 0); });                  // no umem
  refused([](Command& it) { it.in.resize(20); });                     // cut off
  EXPECT_EQ(Mlx5Library::get().umem_reg(end.context.get(), reinterpret_cast<void*>(4096), 4096, 0), nullptr);
  EXPECT_EQ(errno, EFAULT);
  // A CQ that a QP uses stays.
  EXPECT_EQ(Mlx5Library::get().obj_destroy(end.cq), EBUSY);
  const auto ordinary = open_device("soft0");
  EXPECT_EQ(Mlx5Library::get().alloc_uar(ordinary.get(), 0), nullptr);
}

}  // namespace
}  // namespace softnic_test
