// The last of the ways between processes: memory that is not shared and that the
// kernel does not copy (agent0: move=never,kernel=never). The owner's agent does,
// and the rest is as everywhere.

#include <signal.h>
#include <sys/mman.h>

#include <cstring>
#include <fstream>

#include "fixture.h"

namespace softnic_test {
namespace {

constexpr std::size_t kBuffer = 8u << 20;
/// More than one piece of the agent's, and no multiple of it.
constexpr std::uint32_t kLarge = (3u << 20) + 5;

EndOptions by_agent() {
  EndOptions options;
  options.device = "agent0";
  options.buffer_bytes = kBuffer;
  options.timeout = 0;  // nothing here may wait for ever
  return options;
}

/// Body of a second process: connects, then `body`.
std::function<void(int)> there(std::function<void(int, End&, const Address&)> body) {
  return [body = std::move(body)](int socket) {
    End end(by_agent());
    const Address peer = meet_parent(end, socket);
    body(socket, end, peer);
  };
}

std::string data_path(const std::string& device) {
  std::ifstream file("/sys/class/infiniband/" + device + "/data_path");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(SoftnicAgent, TheDeviceSaysSo) {
  EXPECT_EQ(data_path("agent0").rfind("window off move=never\nkernel off kernel=never\nagent first ", 0), 0u)
      << data_path("agent0");
  EXPECT_EQ(data_path("stay0").rfind("window off move=never\nkernel ", 0), 0u) << data_path("stay0");
  EXPECT_NE(data_path("soft0").find("\nagent fallback "), std::string::npos) << data_path("soft0");
}

TEST(SoftnicAgent, WritesAndReadsOfEverySize) {
  SecondProcess other(there([](int socket, End& end, const Address&) {
    end.memory->fill(2);
    tell(socket, 1);
    hear<int>(socket);
    for (const std::uint32_t length : {1u, 8u, 9u, 4096u, kLarge}) {
      // Written behind what is read.
      EXPECT_TRUE(end.memory->holds(3, kBuffer / 2, length)) << length;
    }
  }));
  End end(by_agent());
  const Address peer = meet(end, other);
  hear<int>(other.socket());
  for (const std::uint32_t length : {1u, 8u, 9u, 4096u, kLarge}) {
    end.memory->fill(1);
    ASSERT_EQ(end.post(IBV_WR_RDMA_READ, peer, 64, length), 0);
    ASSERT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS) << length;
    EXPECT_TRUE(end.memory->holds(2, 64, length)) << length;
    EXPECT_TRUE(end.memory->holds(1, 64 + length, 64)) << length;
    end.memory->fill(3);
    ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, kBuffer / 2, length), 0);
    ASSERT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS) << length;
  }
  tell(other.socket(), 1);
  EXPECT_EQ(other.wait(), 0);
}

TEST(SoftnicAgent, SendsWaitForReceivesAndWakeASleeper) {
  SecondProcess other([](int socket) {
    EndOptions options = by_agent();
    options.events = true;
    End end(options);
    tell(socket, end.address());
    ASSERT_EQ(end.connect(hear<Address>(socket)), 0);
    ASSERT_EQ(ibv_req_notify_cq(end.recv_cq.get(), 0), 0);
    tell(socket, 1);
    hear<int>(socket);  // a SEND waits by now
    ASSERT_EQ(end.post_recv(0, kLarge, 7), 0);
    ibv_cq* cq = nullptr;
    void* user = nullptr;
    ASSERT_EQ(ibv_get_cq_event(end.channel.get(), &cq, &user), 0);
    ibv_ack_cq_events(cq, 1);
    const auto received = next_completion(end.recv_cq.get());
    ASSERT_TRUE(received);
    EXPECT_EQ(received->status, IBV_WC_SUCCESS);
    EXPECT_EQ(received->byte_len, kLarge);
    EXPECT_TRUE(end.memory->holds(4, 0, kLarge));
  });
  End end(by_agent());
  end.memory->fill(4);
  const Address peer = meet(end, other);
  ASSERT_EQ(end.post(IBV_WR_SEND, peer, 0, kLarge), 0);
  EXPECT_TRUE(stays_empty(end.send_cq.get()));
  tell(other.socket(), 1);
  EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(other.wait(), 0);
}

ibv_send_wr fetch_and_add(End& end, const Address& peer, ibv_sge& sge, std::uint64_t add) {
  ibv_send_wr request = end.request(IBV_WR_ATOMIC_FETCH_AND_ADD, peer, sge);
  request.wr.atomic.remote_addr = peer.buffer;
  request.wr.atomic.rkey = peer.rkey;
  request.wr.atomic.compare_add = add;
  return request;
}

TEST(SoftnicAgent, AtomicsOfTwoProcessesAddUp) {
  constexpr int kAdds = 200;
  const auto add_up = [](End& end, const Address& peer, int times) {
    for (int i = 0; i < times; ++i) {
      ibv_sge sge = end.memory->sge(1024, 8);
      ASSERT_EQ(end.post(fetch_and_add(end, peer, sge, 1)), 0);
      ASSERT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS);
    }
  };
  End here[2] = {End(by_agent()), End(by_agent())};
  std::memset(here[0].memory->data(), 0, 8);
  SecondProcess first(there([&](int, End& end, const Address& peer) { add_up(end, peer, kAdds); }));
  SecondProcess second([&](int socket) {
    // The same word, through another QP of the same owner.
    End end(by_agent());
    tell(socket, end.address());
    Address peer = hear<Address>(socket);
    ASSERT_EQ(end.connect(peer), 0);
    tell(socket, 1);
    add_up(end, peer, kAdds);
  });
  meet(here[0], first);
  // One domain for both: the second end registers the first one's memory.
  Memory& words = *here[0].memory;
  Owned<ibv_mr> again(register_memory(here[1].pd.get(), words.data(), 4096, kAllAccess));
  ASSERT_NE(again, nullptr);
  const auto peer = hear<Address>(second.socket());
  Address shared = here[1].address();
  shared.buffer = words.address();
  shared.rkey = again->rkey;
  tell(second.socket(), shared);
  ASSERT_EQ(here[1].connect(peer), 0);
  ASSERT_EQ(hear<int>(second.socket()), 1);
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
  std::uint64_t sum = 0;
  std::memcpy(&sum, words.data(), sizeof sum);
  EXPECT_EQ(sum, 2u * kAdds);
}

/// Each one's agent works while its program is itself waiting for the other's.
TEST(SoftnicAgent, BothWaysAtOnce) {
  const auto write_much = [](End& end, const Address& peer) {
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, kBuffer / 2, i % 10 == 0 ? kLarge : 64u), 0);
      ASSERT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS);
    }
  };
  SecondProcess other(there([&](int socket, End& end, const Address& peer) {
    write_much(end, peer);
    tell(socket, 1);
    hear<int>(socket);
  }));
  End end(by_agent());
  const Address peer = meet(end, other);
  write_much(end, peer);
  EXPECT_EQ(hear<int>(other.socket()), 1);
  tell(other.socket(), 1);
  EXPECT_EQ(other.wait(), 0);
}

TEST(SoftnicAgent, MemoryThatIsNotThereIsAnError) {
  SecondProcess other(there([](int socket, End& end, const Address&) {
    ASSERT_EQ(::munmap(end.memory->data() + 8192, 4096), 0);
    tell(socket, 1);
    hear<int>(socket);
  }));
  End end(by_agent());
  const Address peer = meet(end, other);
  hear<int>(other.socket());
  ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, 0, 8192), 0);
  EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS);
  ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, 4096, 8192), 0);
  EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_REM_OP_ERR);
  tell(other.socket(), 1);
  EXPECT_EQ(other.wait(), 0);
}

TEST(SoftnicAgent, AKilledPeerIsNoticed) {
  SecondProcess other(there([](int socket, End&, const Address&) { hear<int>(socket); }));
  End end(by_agent());
  const Address peer = meet(end, other);
  ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, 0, 64), 0);
  EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS);
  other.kill();
  other.wait();
  ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, 0, kLarge), 0);
  EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_RETRY_EXC_ERR);
}

/// One that dies in the middle leaves its agent there, which ends; others find theirs.
TEST(SoftnicAgent, AKilledInitiatorLeavesTheTargetUsable) {
  for (int round = 0; round < 5; ++round) {
    End end(by_agent());
    SecondProcess other(there([](int socket, End& far, const Address& peer) {
      tell(socket, 1);
      while (true) {
        far.post(IBV_WR_RDMA_WRITE, peer, 0, kLarge);
        next_completion(far.send_cq.get());
      }
    }));
    meet(end, other);
    hear<int>(other.socket());
    other.kill();
    other.wait();
    end.memory->deregister();
    EXPECT_EQ(end.to(IBV_QPS_RESET), 0);
  }
}

}  // namespace
}  // namespace softnic_test
