// Receive memory pools, by which QPs that commands made share receives.

#include <atomic>
#include <random>

#include "mlx5/devx.h"

namespace softnic_test {
namespace {

/// A receive memory pool by a command, in a umem of its own, and what programs do to its list.
class Pool {
 public:
  static constexpr std::uint32_t kReceives = 8, kBytes = 32;
  static constexpr std::size_t kRecordAt = 1024;

  Pool(const DevxEnd& owner, bool linked) : end(owner), umem(owner.context.get(), 4096), linked_(linked) {
    Command made = command();
    object = made.create(end.context.get());
    EXPECT_NE(object, nullptr) << made.status();
    number = static_cast<std::uint32_t>(made.get(72, 24));
    for (std::uint32_t i = 0; i < kReceives; ++i) link(i, (i + 1) % kReceives);
  }
  ~Pool() {
    if (object != nullptr) {
      EXPECT_EQ(Mlx5Library::get().obj_destroy(object), 0);
    }
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  Command command() const {
    Command made(0x90c);
    made.set(kRmpc + 8, 4, 1);
    made.set(kRmpc + 32, 1, linked_ ? 0 : 1);
    made.set(kRmpWq, 4, linked_ ? 0 : 1);
    made.set(kRmpWq + 72, 24, end.pdn());
    made.set(kRmpWq + 128, 64, kRecordAt);
    made.set(kRmpWq + 268, 4, 5);
    made.set(kRmpWq + 283, 5, 3);
    made.set(kRmpWq + 320, 32, umem.id());
    made.set(kRmpWq + 352, 32, umem.id());
    return made;
  }
  /// The receive at `place` becomes the last that is posted.
  void post(std::uint32_t place, const ibv_sge& sge) {
    auto* segment = reinterpret_cast<mlx5_wqe_data_seg*>(at(place) + (linked_ ? 16 : 0));
    mlx5dv_set_data_seg(segment, sge.length, sge.lkey, sge.addr);
    if (!linked_) mlx5dv_set_data_seg(segment + 1, 0, MLX5_INVALID_LKEY, 0);
    auto& record = *reinterpret_cast<__be32*>(umem.data() + kRecordAt);
    std::atomic_ref(record).store(htobe32(++posted_), std::memory_order_release);
  }
  void link(std::uint32_t place, std::uint32_t next) {
    if (!linked_) return;
    auto* segment = reinterpret_cast<mlx5_wqe_srq_next_seg*>(at(place));
    segment->next_wqe_index = htobe16(static_cast<std::uint16_t>(next));
  }

  const DevxEnd& end;
  Umem umem;
  mlx5dv_devx_obj* object = nullptr;
  std::uint32_t number = 0;

 private:
  std::uint8_t* at(std::uint32_t place) const { return umem.data() + place * kBytes; }
  bool linked_;
  std::uint32_t posted_ = 0;
};

/// A QP that takes its receives from a pool, in place of the one that an end has.
void use_pool(DevxEnd& end, const Pool& pool) {
  ASSERT_EQ(Mlx5Library::get().obj_destroy(end.qp), 0);
  Command command = end.qp_command();
  command.set(kQpc + 1381, 3, 1);
  command.set(kQpc + 1384, 24, pool.number);
  command.set(2048, 64, DevxEnd::kRingAt + DevxEnd::kReceives * DevxEnd::kReceiveBytes);
  end.qp = command.create(end.context.get());
  ASSERT_NE(end.qp, nullptr) << command.status();
  end.qpn = static_cast<std::uint32_t>(command.get(72, 24));
}

TEST(SoftnicMlx5Devx, ReceivesComeFromAPool) {
  for (const bool linked : {true, false}) {
    DevxEnd client, server;
    auto pool = std::make_unique<Pool>(server, linked);
    use_pool(server, *pool);
    connect(client, server);
    HandQp qp = client.hand();
    HandCq done = client.hand_cq();
    HandCq arrived = server.hand_cq();
    client.memory.fill(5);
    Wqe send;
    send.opcode = MLX5_OPCODE_SEND;
    // Several times round it; one of a list is never posted.
    std::uint32_t next = 0;
    for (std::uint32_t i = 0; i < 5; ++i, ++next) pool->post(next, server.memory.sge(64 * next, 64));
    for (std::uint32_t i = 0; i < 5 * Pool::kReceives; ++i) {
      send.sges = {client.memory.sge(64 * i, 1 + i)};
      qp.post(send);
      const auto sent = done.next();
      ASSERT_TRUE(sent);
      ASSERT_EQ(cqe_opcode(*sent), MLX5_CQE_REQ) << int(syndrome(*sent));
      const auto got = arrived.next();
      ASSERT_TRUE(got);
      ASSERT_EQ(cqe_opcode(*got), MLX5_CQE_RESP_SEND);
      const std::uint32_t place = wqe_counter(*got) % Pool::kReceives;
      EXPECT_EQ(place, i % Pool::kReceives);
      EXPECT_EQ(be32toh(got->byte_cnt), 1 + i);
      EXPECT_EQ(std::memcmp(client.memory.data() + 64 * i, server.memory.data() + 64 * place, 1 + i), 0);
      const std::uint32_t free = next++ % Pool::kReceives;
      pool->post(free, server.memory.sge(64 * free, 64));
    }
    // Its QP needs it.
    EXPECT_EQ(Mlx5Library::get().obj_destroy(pool->object), EBUSY);
    ASSERT_EQ(Mlx5Library::get().obj_destroy(server.qp), 0);
    server.qp = nullptr;
  }
}

TEST(SoftnicMlx5Devx, APoolThatIsGarbageHarmsNobody) {
  DevxEnd client, server;
  auto pool = std::make_unique<Pool>(server, true);
  use_pool(server, *pool);
  connect(client, server);
  for (std::uint32_t i = 0; i < Pool::kReceives; ++i) pool->link(i, 0xfff0 + 3 * i);
  for (std::uint32_t i = 0; i < 4; ++i) pool->post(i, server.memory.sge(0, 64));
  HandQp qp = client.hand();
  HandCq done = client.hand_cq();
  Wqe send;
  send.opcode = MLX5_OPCODE_SEND;
  send.sges = {client.memory.sge(0, 8)};
  qp.post(send);
  EXPECT_TRUE(done.next());
  ASSERT_EQ(Mlx5Library::get().obj_destroy(server.qp), 0);
  server.qp = nullptr;
}

TEST(SoftnicMlx5Devx, PoolsThatAreWrongAreRefused) {
  DevxEnd end;
  const Pool pool(end, true);
  const auto refused = [&](const std::function<void(Command&)>& spoil) {
    expect_refused(end, pool.command(), spoil);
  };
  refused([](Command& it) { it.set(kRmpc + 8, 4, 0); });              // state
  refused([](Command& it) { it.set(kRmpWq, 4, 2); });                 // kind
  refused([](Command& it) { it.set(kRmpc + 32, 1, 1); });             // a ring, and a list
  refused([](Command& it) { it.set(kRmpWq + 72, 24, 0xabcdef); });    // PD
  refused([](Command& it) { it.set(kRmpWq + 268, 4, 4); });           // no room behind the link
  refused([](Command& it) { it.set(kRmpWq + 268, 4, 15); });
  refused([](Command& it) { it.set(kRmpWq + 283, 5, 31); });          // size
  refused([](Command& it) { it.set(kRmpWq + 320, 32, 0); });          // umems
  refused([](Command& it) { it.set(kRmpWq + 352, 32, 0); });
  refused([](Command& it) { it.set(kRmpWq + 320, 32, 0xffff); });
  refused([](Command& it) { it.set(kRmpWq + 352, 32, 0xffff); });
  refused([](Command& it) { it.set(kRmpWq + 384, 64, 4096 - 64); });  // beyond its end
  refused([](Command& it) { it.set(kRmpWq + 384, 64, 8); });          // not on a line
  refused([](Command& it) { it.set(kRmpWq + 128, 64, 4096); });
  refused([](Command& it) { it.in.resize(70); });                    // cut off
  Command qp = end.qp_command();
  qp.set(kQpc + 1381, 3, 1);
  qp.set(kQpc + 1384, 24, pool.number + 1);
  EXPECT_EQ(qp.create(end.context.get()), nullptr);
}

/// Bits anywhere may be wrong: what is refused says so, and what is made can be taken away.
TEST(SoftnicMlx5Devx, CommandsWithWrongBits) {
  DevxEnd end;
  const Pool pool(end, true);
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    Command command = i % 2 == 0 ? pool.command() : end.qp_command();
    for (int flips = 1 + i % 3; flips > 0; --flips) {
      command.in[random() % 288] ^= static_cast<std::uint8_t>(1u << random() % 8);
    }
    if (command.in[0] * 256 + command.in[1] == 0x400) continue;
    mlx5dv_devx_obj* const made = command.create(end.context.get());
    if (made == nullptr) {
      ASSERT_NE(command.status(), 0u);
    } else {
      ASSERT_EQ(Mlx5Library::get().obj_destroy(made), 0);
    }
  }
  const DevxEnd other;
  connect(end, other);
}

}  // namespace
}  // namespace softnic_test
