// Each request that a WQE can be, by hand, and the CQE of each end.

#include <endian.h>

#include <chrono>
#include <cstring>

#include "mlx5/hand.h"

namespace softnic_test {
namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t word_at(Memory& memory, std::size_t offset) {
  std::uint64_t word;
  std::memcpy(&word, memory.data() + offset, sizeof word);
  return word;
}

void put_word(Memory& memory, std::size_t offset, std::uint64_t word) {
  std::memcpy(memory.data() + offset, &word, sizeof word);
}

TEST(SoftnicMlx5Requests, AReadFetchesWithItsByteCount) {
  HandPair hand;
  hand.pair.server.memory->fill(5);
  hand.qp.post(hand.request(MLX5_OPCODE_RDMA_READ, 100, 777));
  const auto done = hand.cq.next();
  ASSERT_TRUE(done);
  EXPECT_EQ(wqe_opcode(*done), MLX5_OPCODE_RDMA_READ);
  EXPECT_EQ(be32toh(done->byte_cnt), 777u);
  EXPECT_TRUE(hand.pair.client.memory->holds(5, 100, 777));
}

TEST(SoftnicMlx5Requests, SendsFindReceivesWrittenToTheRing) {
  HandPair hand;
  HandQp server(hand.pair.server.qp.get());
  HandCq arrived(hand.pair.server.recv_cq.get());
  const struct {
    std::uint8_t opcode;
    std::uint8_t cqe;
    std::uint32_t imm;
  } kinds[] = {{MLX5_OPCODE_SEND, MLX5_CQE_RESP_SEND, 0},
               {MLX5_OPCODE_SEND_IMM, MLX5_CQE_RESP_SEND_IMM, 0x12345678},
               {MLX5_OPCODE_RDMA_WRITE_IMM, MLX5_CQE_RESP_WR_IMM, 0x87654321}};
  std::uint16_t receive = 0;
  for (const auto& kind : kinds) {
    hand.pair.client.memory->fill(static_cast<std::uint8_t>(20 + receive));
    std::memset(hand.pair.server.memory->data(), 0, 4096);
    // Two segments.
    server.post_receive({hand.pair.server.memory->sge(0, 10), hand.pair.server.memory->sge(10, 500)});
    Wqe wqe = hand.request(kind.opcode, 0, 300);
    wqe.imm = kind.imm;
    hand.qp.post(wqe);
    const auto sent = hand.cq.next();
    ASSERT_TRUE(sent);
    EXPECT_EQ(cqe_opcode(*sent), MLX5_CQE_REQ);
    EXPECT_EQ(wqe_opcode(*sent), kind.opcode);
    const auto got = arrived.next();
    ASSERT_TRUE(got);
    EXPECT_EQ(cqe_opcode(*got), kind.cqe);
    EXPECT_EQ(be32toh(got->byte_cnt), 300u);
    EXPECT_EQ(wqe_counter(*got), receive++);
    EXPECT_EQ(cqe_qpn(*got), server.number());
    if (kind.imm != 0) {
      EXPECT_EQ(got->imm_inval_pkey, kind.imm);
    }
    EXPECT_TRUE(hand.pair.server.memory->holds(static_cast<std::uint8_t>(19 + receive), 0, 300));
  }
}

TEST(SoftnicMlx5Requests, AtomicsGiveBackWhatWasThere) {
  HandPair hand;
  put_word(*hand.pair.server.memory, 64, 40);
  Wqe add = hand.request(MLX5_OPCODE_ATOMIC_FA, 64, 8);
  add.swap_add = 2;
  hand.qp.post(add);
  auto done = hand.cq.next();
  ASSERT_TRUE(done);
  EXPECT_EQ(wqe_opcode(*done), MLX5_OPCODE_ATOMIC_FA);
  EXPECT_EQ(word_at(*hand.pair.client.memory, 64), 40u);
  EXPECT_EQ(word_at(*hand.pair.server.memory, 64), 42u);
  Wqe swap = hand.request(MLX5_OPCODE_ATOMIC_CS, 64, 8);
  swap.compare = 42;
  swap.swap_add = 7;
  hand.qp.post(swap);
  ASSERT_TRUE(done = hand.cq.next());
  EXPECT_EQ(word_at(*hand.pair.client.memory, 64), 42u);
  EXPECT_EQ(word_at(*hand.pair.server.memory, 64), 7u);
  hand.qp.post(swap);
  ASSERT_TRUE(done = hand.cq.next());
  EXPECT_EQ(word_at(*hand.pair.client.memory, 64), 7u);
  EXPECT_EQ(word_at(*hand.pair.server.memory, 64), 7u);
}

TEST(SoftnicMlx5Requests, InlineDataIsInTheRing) {
  HandPair hand;
  // Over one, two and more blocks, and over the ring's end.
  for (int i = 0; i < 200; ++i) {
    const std::string text(static_cast<std::size_t>(1 + i), static_cast<char>('a' + i % 26));
    Wqe wqe = hand.write(0, 0);
    wqe.sges.clear();
    wqe.inlined = text;
    hand.qp.post(wqe);
    const auto done = hand.cq.next();
    ASSERT_TRUE(done);
    ASSERT_EQ(cqe_opcode(*done), MLX5_CQE_REQ) << i;
    ASSERT_EQ(std::memcmp(hand.pair.server.memory->data(), text.data(), text.size()), 0) << i;
  }
  EXPECT_GT(hand.qp.producer(), hand.qp.rings().sq.wqe_cnt);
}

TEST(SoftnicMlx5Requests, SeveralSegmentsAreOneMessage) {
  HandPair hand;
  hand.pair.client.memory->fill(9);
  Wqe wqe = hand.write(0, 0);
  wqe.sges = {hand.pair.client.memory->sge(0, 1), hand.pair.client.memory->sge(1, 62),
              hand.pair.client.memory->sge(63, 4000), hand.pair.client.memory->sge(4063, 9)};
  hand.qp.post(wqe);
  const auto done = hand.cq.next();
  ASSERT_TRUE(done);
  EXPECT_EQ(cqe_opcode(*done), MLX5_CQE_REQ);
  EXPECT_TRUE(hand.pair.server.memory->holds(9, 0, 4072));
}

TEST(SoftnicMlx5Requests, AMessageMayBeEmpty) {
  HandPair hand;
  Wqe wqe = hand.write(0, 0);
  wqe.sges.clear();
  hand.qp.post(wqe);
  const auto done = hand.cq.next();
  ASSERT_TRUE(done);
  EXPECT_EQ(cqe_opcode(*done), MLX5_CQE_REQ);
}

TEST(SoftnicMlx5Requests, ANopCompletesWhenItAsksForIt) {
  HandPair hand;
  Wqe nop;
  nop.opcode = MLX5_OPCODE_NOP;
  nop.flags = 0;
  hand.qp.post(nop);
  EXPECT_TRUE(hand.cq.stays_empty());
  nop.flags = MLX5_WQE_CTRL_CQ_UPDATE;
  const std::uint16_t place = hand.qp.post(nop);
  const auto done = hand.cq.next();
  ASSERT_TRUE(done);
  EXPECT_EQ(wqe_opcode(*done), MLX5_OPCODE_NOP);
  EXPECT_EQ(wqe_counter(*done), place);
}

TEST(SoftnicMlx5Requests, UnsignalledOnesHaveNoCqe) {
  HandPair hand;
  hand.pair.client.memory->fill(7);
  Wqe quiet = hand.write(0, 8);
  quiet.flags = 0;
  for (int i = 0; i < 10; ++i) hand.qp.post(quiet);
  const std::uint16_t last = hand.qp.post(hand.write(8, 8));
  const auto done = hand.cq.next();
  ASSERT_TRUE(done);
  EXPECT_EQ(wqe_counter(*done), last);
  EXPECT_TRUE(hand.pair.server.memory->holds(7, 0, 16));
  EXPECT_TRUE(hand.cq.stays_empty());
}

TEST(SoftnicMlx5Requests, TheLinkModelApplies) {
  HandPair hand(mlx5_end("mlxlink0"), mlx5_end("mlxlink1"));
  const auto from = Clock::now();
  hand.qp.post(hand.write(0, 1'000'000));
  ASSERT_TRUE(hand.cq.next());
  EXPECT_GE(Clock::now() - from, std::chrono::microseconds(1040));
}

TEST(SoftnicMlx5Requests, AFencedRequestWaitsForReads) {
  HandPair hand(mlx5_end("mlxlink0"), mlx5_end("mlxlink1"));
  hand.pair.server.memory->fill(1);
  std::memset(hand.pair.client.memory->data(), 0, 4096);
  // The fence keeps the write from taking bytes that the read has not brought yet.
  hand.qp.write(hand.request(MLX5_OPCODE_RDMA_READ, 0, 4096));
  Wqe wqe = hand.write(8192, 4096);
  wqe.sges = {hand.pair.client.memory->sge(0, 4096)};
  wqe.flags = MLX5_WQE_CTRL_CQ_UPDATE | MLX5_WQE_CTRL_FENCE;
  hand.qp.write(wqe);
  hand.qp.ring();
  ASSERT_TRUE(hand.cq.next());
  ASSERT_TRUE(hand.cq.next());
  EXPECT_EQ(std::memcmp(hand.pair.server.memory->data(), hand.pair.server.memory->data() + 8192, 4096), 0);
}

TEST(SoftnicMlx5Requests, FaultsApply) {
  HandPair hand(mlx5_end("mlxdrop0"), mlx5_end());
  hand.pair.client.memory->fill(6);
  hand.qp.post(hand.write(0, 64));
  ASSERT_TRUE(hand.cq.next());
  EXPECT_FALSE(hand.pair.server.memory->holds(6, 0, 64));
}

TEST(SoftnicMlx5Requests, OverTcp) {
  HandPair hand(mlx5_end("mlxtcp0"), mlx5_end("mlxtcp0"));
  HandQp server(hand.pair.server.qp.get());
  HandCq arrived(hand.pair.server.recv_cq.get());
  hand.pair.client.memory->fill(8);
  server.post_receive({hand.pair.server.memory->sge(0, 512)});
  hand.qp.write(hand.write(4096, 1000));
  hand.qp.write(hand.request(MLX5_OPCODE_SEND, 4096, 500));
  hand.qp.ring();
  for (int i = 0; i < 2; ++i) {
    const auto done = hand.cq.next();
    ASSERT_TRUE(done);
    EXPECT_EQ(cqe_opcode(*done), MLX5_CQE_REQ);
  }
  const auto got = arrived.next();
  ASSERT_TRUE(got);
  EXPECT_EQ(be32toh(got->byte_cnt), 500u);
  EXPECT_TRUE(hand.pair.server.memory->holds(8, 4096, 1000));
}

TEST(SoftnicMlx5Requests, UcHasRingsToo) {
  EndOptions options = mlx5_end();
  options.type = IBV_QPT_UC;
  HandPair hand(options, options);
  hand.pair.client.memory->fill(2);
  hand.qp.post(hand.write(0, 100));
  ASSERT_TRUE(hand.cq.next());
  EXPECT_TRUE(hand.pair.server.memory->holds(2, 0, 100));
  // UC has no reads.
  hand.qp.post(hand.request(MLX5_OPCODE_RDMA_READ, 0, 8));
  const auto done = hand.cq.next();
  ASSERT_TRUE(done);
  EXPECT_EQ(cqe_opcode(*done), MLX5_CQE_REQ_ERR);
}

TEST(SoftnicMlx5Requests, AnotherProcessIsReached) {
  SecondProcess other([](int socket) {
    End end(mlx5_end("mlx1"));
    const Address peer = meet_parent(end, socket);
    (void)peer;
    HandQp rings(end.qp.get());
    HandCq arrived(end.recv_cq.get());
    rings.post_receive({end.memory->sge(0, 64)});
    tell(socket, 1);
    const auto got = arrived.next();
    EXPECT_TRUE(got);
    if (got) {
      EXPECT_EQ(cqe_opcode(*got), MLX5_CQE_RESP_SEND_IMM);
    }
    EXPECT_TRUE(end.memory->holds(11, 0, 32));
    tell(socket, 2);
    EXPECT_EQ(hear<int>(socket), 3);
  });
  End end(mlx5_end());
  end.memory->fill(11);
  meet(end, other);
  EXPECT_EQ(hear<int>(other.socket()), 1);
  HandQp qp(end.qp.get());
  HandCq cq(end.send_cq.get());
  Wqe wqe;
  wqe.opcode = MLX5_OPCODE_SEND_IMM;
  wqe.sges = {end.memory->sge(0, 32)};
  qp.post(wqe);
  const auto done = cq.next();
  ASSERT_TRUE(done);
  EXPECT_EQ(cqe_opcode(*done), MLX5_CQE_REQ);
  EXPECT_EQ(hear<int>(other.socket()), 2);
  tell(other.socket(), 3);
  EXPECT_EQ(other.wait(), 0);
}

}  // namespace
}  // namespace softnic_test
