// Behaviour of a connected QP when all goes well: in one process, between two
// devices, and between two processes on each way that data can take.

#include <cstring>

#include "fixture.h"

namespace softnic_test {
namespace {

constexpr std::uint32_t kSizes[] = {1, 2, 3, 8, 9, 64, 100, 4096, 4097, 65536, 1000003};

/// Writes, reads and sends of many sizes at odd and even offsets.
void exercise(End& end, const Address& peer,
              const std::function<bool(std::uint8_t, std::size_t, std::size_t)>& peer_holds) {
  std::uint8_t seed = 1;
  for (const std::uint32_t size : kSizes) {
    for (const std::size_t offset : {std::size_t{0}, std::size_t{5}}) {
      end.memory->fill(++seed);
      ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, offset, size, 7), 0);
      auto done = next_completion(end.send_cq.get());
      ASSERT_TRUE(done);
      EXPECT_EQ(done->status, IBV_WC_SUCCESS);
      EXPECT_EQ(done->opcode, IBV_WC_RDMA_WRITE);
      EXPECT_EQ(done->wr_id, 7u);
      EXPECT_EQ(done->qp_num, end.qp->qp_num);
      EXPECT_TRUE(peer_holds(seed, offset, size)) << size << " at " << offset;

      std::memset(end.memory->data(), 0, end.memory->size());
      ASSERT_EQ(end.post(IBV_WR_RDMA_READ, peer, offset, size, 8), 0);
      done = next_completion(end.send_cq.get());
      ASSERT_TRUE(done);
      EXPECT_EQ(done->status, IBV_WC_SUCCESS);
      EXPECT_EQ(done->opcode, IBV_WC_RDMA_READ);
      EXPECT_EQ(done->byte_len, size);
      EXPECT_TRUE(end.memory->holds(seed, offset, size));
    }
  }
}

TEST(SoftnicRc, WritesAndReadsInOneProcess) {
  Pair pair;
  exercise(pair.client, pair.server.address(), [&](auto... where) { return pair.server.memory->holds(where...); });
}

TEST(SoftnicRc, WritesAndReadsBetweenTwoDevices) {
  EndOptions second;
  second.device = "soft1";
  Pair pair({}, second);
  exercise(pair.client, pair.server.address(), [&](auto... where) { return pair.server.memory->holds(where...); });
}

TEST(SoftnicRc, AQpMayBeItsOwnPeer) {
  End end;
  ASSERT_EQ(end.connect(end.address()), 0);
  ASSERT_EQ(end.post_recv(4096, 100, 5), 0);
  std::strcpy(reinterpret_cast<char*>(end.memory->data()), "to myself");
  ASSERT_EQ(end.post(IBV_WR_SEND, end.address(), 0, 10), 0);
  const auto received = next_completion(end.recv_cq.get());
  ASSERT_TRUE(received);
  EXPECT_EQ(received->status, IBV_WC_SUCCESS);
  EXPECT_STREQ(reinterpret_cast<char*>(end.memory->data()) + 4096, "to myself");
}

/// The other process answers questions about its buffer until it hears 0.
struct Question {
  std::uint8_t seed = 0;
  std::uint64_t from = 0;
  std::uint64_t length = 0;
};

void answer_questions(int socket, const EndOptions& options) {
  End end(options);
  meet_parent(end, socket);
  while (true) {
    const auto question = hear<Question>(socket);
    if (question.seed == 0) return;
    tell(socket, end.memory->holds(question.seed, question.from, question.length) ? 1 : 0);
  }
}

void exercise_across(const EndOptions& there) {
  SecondProcess other([&](int socket) { answer_questions(socket, there); });
  End end;
  const Address peer = meet(end, other);
  exercise(end, peer, [&](std::uint8_t seed, std::size_t from, std::size_t length) {
    tell(other.socket(), Question{seed, from, length});
    return hear<int>(other.socket()) == 1;
  });
  tell(other.socket(), Question{});
  EXPECT_EQ(other.wait(), 0);
}

TEST(SoftnicRc, WritesAndReadsBetweenProcessesThroughTheWindow) { exercise_across({}); }

TEST(SoftnicRc, WritesAndReadsBetweenProcessesThroughTheKernel) {
  EndOptions there;
  there.device = "stay0";
  exercise_across(there);
}

TEST(SoftnicRc, SendReachesTheOldestReceive) {
  Pair pair;
  End& client = pair.client;
  End& server = pair.server;
  client.memory->fill(3);
  ASSERT_EQ(server.post_recv(0, 1000, 11), 0);
  ASSERT_EQ(server.post_recv(1000, 1000, 12), 0);
  ASSERT_EQ(client.post(IBV_WR_SEND, {}, 0, 1000, 1), 0);
  ASSERT_EQ(client.post(IBV_WR_SEND_WITH_IMM, {}, 1000, 500, 0x1234), 0);
  auto received = next_completion(server.recv_cq.get());
  ASSERT_TRUE(received);
  EXPECT_EQ(received->wr_id, 11u);
  EXPECT_EQ(received->opcode, IBV_WC_RECV);
  EXPECT_EQ(received->byte_len, 1000u);
  EXPECT_EQ(received->wc_flags & IBV_WC_WITH_IMM, 0u);
  EXPECT_EQ(received->qp_num, server.qp->qp_num);
  EXPECT_EQ(received->src_qp, client.qp->qp_num);
  received = next_completion(server.recv_cq.get());
  ASSERT_TRUE(received);
  EXPECT_EQ(received->wr_id, 12u);
  EXPECT_EQ(received->byte_len, 500u);
  EXPECT_EQ(received->wc_flags & IBV_WC_WITH_IMM, unsigned{IBV_WC_WITH_IMM});
  EXPECT_EQ(received->imm_data, 0x1234u);
  EXPECT_TRUE(server.memory->holds(3, 0, 1500));
}

TEST(SoftnicRc, WriteWithImmediateConsumesAReceive) {
  Pair pair;
  pair.client.memory->fill(9);
  ASSERT_EQ(pair.server.post_recv(0, 0, 21), 0);
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE_WITH_IMM, pair.server.address(), 64, 4096, 77), 0);
  const auto received = next_completion(pair.server.recv_cq.get());
  ASSERT_TRUE(received);
  EXPECT_EQ(received->status, IBV_WC_SUCCESS);
  EXPECT_EQ(received->opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(received->wr_id, 21u);
  EXPECT_EQ(received->imm_data, 77u);
  EXPECT_EQ(received->byte_len, 4096u);
  EXPECT_TRUE(pair.server.memory->holds(9, 64, 4096));
}

TEST(SoftnicRc, SgeListsAreGatheredAndScattered) {
  Pair pair;
  End& client = pair.client;
  End& server = pair.server;
  client.memory->fill(17);
  ibv_sge to[3] = {server.memory->sge(0, 10), server.memory->sge(100, 0), server.memory->sge(200, 300)};
  ibv_recv_wr receive{};
  receive.sg_list = to;
  receive.num_sge = 3;
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_EQ(ibv_post_recv(server.qp.get(), &receive, &bad_receive), 0);

  ibv_sge from[3] = {client.memory->sge(5, 4), client.memory->sge(1000, 100), client.memory->sge(3, 1)};
  ibv_send_wr wr = client.request(IBV_WR_SEND, {}, from[0]);
  wr.num_sge = 3;
  ASSERT_EQ(client.post(wr), 0);
  const auto received = next_completion(server.recv_cq.get());
  ASSERT_TRUE(received);
  EXPECT_EQ(received->status, IBV_WC_SUCCESS);
  EXPECT_EQ(received->byte_len, 105u);
  std::vector<std::uint8_t> sent;
  for (const ibv_sge& piece : from) {
    const auto* begin = reinterpret_cast<const std::uint8_t*>(piece.addr);
    sent.insert(sent.end(), begin, begin + piece.length);
  }
  EXPECT_EQ(std::memcmp(server.memory->data(), sent.data(), 10), 0);
  EXPECT_EQ(std::memcmp(server.memory->data() + 200, sent.data() + 10, 95), 0);
}

TEST(SoftnicRc, InlineDataNeedsNoRegistration) {
  Pair pair;
  std::uint8_t mine[40];
  std::memset(mine, 0x5a, sizeof mine);
  ibv_sge sge{reinterpret_cast<std::uint64_t>(mine), sizeof mine, 0};
  ibv_send_wr wr = pair.client.request(IBV_WR_RDMA_WRITE, pair.server.address(), sge);
  wr.send_flags |= IBV_SEND_INLINE;
  ASSERT_EQ(pair.client.post(wr), 0);
  ASSERT_EQ(next_completion(pair.client.send_cq.get())->status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(pair.server.memory->data(), mine, sizeof mine), 0);
}

TEST(SoftnicRc, InlineDataOfAWaitingRequestIsCopied) {
  Pair pair;
  char mine[16] = "first";
  ibv_sge sge{reinterpret_cast<std::uint64_t>(mine), sizeof mine, 0};
  ibv_send_wr wr = pair.client.request(IBV_WR_SEND, {}, sge);
  wr.send_flags |= IBV_SEND_INLINE;
  ASSERT_EQ(pair.client.post(wr), 0);  // no receive is posted: it waits
  std::strcpy(mine, "second");
  ASSERT_EQ(pair.server.post_recv(0, 100), 0);
  ASSERT_TRUE(next_completion(pair.client.send_cq.get()));
  EXPECT_STREQ(reinterpret_cast<char*>(pair.server.memory->data()), "first");
}

TEST(SoftnicRc, AtomicsChangeAndReturn) {
  for (const char* device : {"soft0", "stay0"}) {
    EndOptions there;
    there.device = device;
    Pair pair({}, there);
    auto* word = reinterpret_cast<std::uint64_t*>(pair.server.memory->data());
    *word = 40;
    ibv_sge sge = pair.client.memory->sge(0, 8);
    ibv_send_wr wr = pair.client.request(IBV_WR_ATOMIC_FETCH_AND_ADD, {}, sge);
    wr.wr.atomic.remote_addr = pair.server.memory->address();
    wr.wr.atomic.rkey = pair.server.memory->mr()->rkey;
    wr.wr.atomic.compare_add = 2;
    ASSERT_EQ(pair.client.post(wr), 0);
    auto done = next_completion(pair.client.send_cq.get());
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, IBV_WC_SUCCESS);
    EXPECT_EQ(done->opcode, IBV_WC_FETCH_ADD);
    EXPECT_EQ(*word, 42u);
    EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(pair.client.memory->data()), 40u);

    wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    wr.wr.atomic.compare_add = 42;
    wr.wr.atomic.swap = 7;
    ASSERT_EQ(pair.client.post(wr), 0);
    done = next_completion(pair.client.send_cq.get());
    ASSERT_TRUE(done);
    EXPECT_EQ(done->opcode, IBV_WC_COMP_SWAP);
    EXPECT_EQ(*word, 7u);
    ASSERT_EQ(pair.client.post(wr), 0);  // does not match any more
    ASSERT_TRUE(next_completion(pair.client.send_cq.get()));
    EXPECT_EQ(*word, 7u);
    EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(pair.client.memory->data()), 7u);
  }
}

TEST(SoftnicRc, SharedReceiveQueueServesItsQps) {
  EndOptions there;
  there.srq = true;
  Pair pair({}, there);
  ASSERT_EQ(pair.server.post_recv(0, 100, 31), 0);
  ASSERT_EQ(pair.server.post_recv(100, 100, 32), 0);
  for (const std::uint64_t expected : {31u, 32u}) {
    ASSERT_EQ(pair.client.post(IBV_WR_SEND, {}, 0, 50), 0);
    const auto received = next_completion(pair.server.recv_cq.get());
    ASSERT_TRUE(received);
    EXPECT_EQ(received->status, IBV_WC_SUCCESS);
    EXPECT_EQ(received->wr_id, expected);
  }
}

/// Messages with a number each, as many as a ring holds many times over.
TEST(SoftnicRc, ManyMessagesArriveInOrder) {
  constexpr std::uint32_t kMessages = 10'000;
  SecondProcess other([](int socket) {
    End end;
    tell(socket, end.address());
    ASSERT_EQ(end.connect(hear<Address>(socket)), 0);
    for (std::uint32_t i = 0; i < 64; ++i) ASSERT_EQ(end.post_recv(i * 64, 64, i), 0);
    tell(socket, 1);
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      const auto received = next_completion(end.recv_cq.get());
      ASSERT_TRUE(received);
      ASSERT_EQ(received->status, IBV_WC_SUCCESS);
      ASSERT_EQ(received->wr_id, i % 64);
      std::uint32_t number;
      std::memcpy(&number, end.memory->data() + received->wr_id * 64, sizeof number);
      ASSERT_EQ(number, i);
      ASSERT_EQ(end.post_recv(received->wr_id * 64, 64, received->wr_id), 0);
    }
    tell(socket, 1);
  });
  End end;
  const Address peer = meet(end, other);
  // Half the slots in flight: on a busy machine each wait may cost a time slice.
  std::uint32_t completed = 0;
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    while (completed + 32 < i) {
      const auto done = next_completion(end.send_cq.get());
      ASSERT_TRUE(done);
      ASSERT_EQ(done->status, IBV_WC_SUCCESS);
      ASSERT_EQ(done->wr_id, completed++);
    }
    std::memcpy(end.memory->data() + (i % 64) * 64, &i, sizeof i);
    ASSERT_EQ(end.post(IBV_WR_SEND, peer, (i % 64) * 64, 64, i), 0);
  }
  EXPECT_EQ(hear<int>(other.socket()), 1);
  EXPECT_EQ(other.wait(), 0);
}

}  // namespace
}  // namespace softnic_test
