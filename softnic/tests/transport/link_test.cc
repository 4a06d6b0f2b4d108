// The link model: what it promises whatever the machine's load
// is. Due times are lower bounds here; how exact they are is bench's business.

#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "modelled_link.h"

namespace softnic_test {
namespace {

using std::chrono::steady_clock;

TEST(SoftnicLink, NothingIsEarly) {
  // 20 ms one way.
  Pair pair(on("far0"), on("far0"));
  pair.client.memory->fill(3);
  auto start = steady_clock::now();
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 64), 0);
  ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_GE(elapsed_ms(start), 40);
  EXPECT_TRUE(pair.server.memory->holds(3, 0, 64));

  start = steady_clock::now();
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_READ, pair.server.address(), 4096, 64), 0);
  ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_GE(elapsed_ms(start), 40);

  start = steady_clock::now();
  ASSERT_EQ(pair.server.post_recv(0, 64), 0);
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, pair.server.address(), 0, 64), 0);
  ASSERT_EQ(status_of(pair.server.recv_cq.get()), IBV_WC_SUCCESS);
  EXPECT_GE(elapsed_ms(start), 20);
  ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
}

TEST(SoftnicLink, TheRateHolds) {
  // 100 MB/s: 32 x 100 kB take 32 ms, whichever QP they are on.
  Pair one(on("slow0"), on("slow0"));
  Pair other(on("slow0"), on("slow0"));
  const auto start = steady_clock::now();
  for (int i = 0; i < 16; ++i) {
    ASSERT_EQ(one.client.post(IBV_WR_RDMA_WRITE, one.server.address(), 0, 100'000), 0);
    ASSERT_EQ(other.client.post(IBV_WR_RDMA_READ, other.server.address(), 0, 100'000), 0);
  }
  for (int i = 0; i < 16; ++i) {
    ASSERT_EQ(status_of(one.client.send_cq.get()), IBV_WC_SUCCESS);
    ASSERT_EQ(status_of(other.client.send_cq.get()), IBV_WC_SUCCESS);
  }
  EXPECT_GE(elapsed_ms(start), 31.9);
}

TEST(SoftnicLink, DataIsWholeOnEveryWay) {
  Pair pair(on("link0"), on("link1"));
  std::uint8_t seed = 40;
  for (const std::uint32_t size : {1u, 64u, 512u, 513u, 4096u, 65537u, 1'000'000u}) {
    pair.client.memory->fill(++seed);
    ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 3, size), 0);
    ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
    EXPECT_TRUE(pair.server.memory->holds(seed, 3, size)) << size;
    std::memset(pair.client.memory->data(), 0, pair.client.memory->size());
    ASSERT_EQ(pair.client.post(IBV_WR_RDMA_READ, pair.server.address(), 3, size), 0);
    ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
    EXPECT_TRUE(pair.client.memory->holds(seed, 3, size)) << size;
    pair.client.memory->fill(++seed);
    ASSERT_EQ(pair.server.post_recv(0, size), 0);
    ASSERT_EQ(pair.client.post(IBV_WR_SEND, pair.server.address(), 0, size), 0);
    const auto received = next_completion(pair.server.recv_cq.get());
    ASSERT_TRUE(received);
    EXPECT_EQ(received->byte_len, size);
    EXPECT_TRUE(pair.server.memory->holds(seed, 0, size)) << size;
    ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  }
}

TEST(SoftnicLink, CompletionsComeInOrderAndReadsSeeWritesBefore) {
  Pair pair(on("link0"), on("link1"));
  pair.client.memory->fill(9);
  ASSERT_EQ(pair.server.post_recv(524288, 4096, 1), 0);
  for (std::uint64_t i = 0; i < 30; ++i) {
    const auto opcode = i % 3 == 0 ? IBV_WR_RDMA_WRITE : i % 3 == 1 ? IBV_WR_RDMA_READ : IBV_WR_ATOMIC_FETCH_AND_ADD;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      ibv_sge sge = pair.client.memory->sge(800'000, 8);
      ibv_send_wr wr = pair.client.request(opcode, pair.server.address(), sge);
      wr.wr_id = i;
      wr.wr.atomic.remote_addr = pair.server.memory->address(900'000);
      wr.wr.atomic.rkey = pair.server.memory->mr()->rkey;
      wr.wr.atomic.compare_add = 1;
      ASSERT_EQ(pair.client.post(wr), 0);
    } else {
      ASSERT_EQ(pair.client.post(opcode, pair.server.address(), i / 3 * 40'000, 40'000, i), 0);
    }
  }
  for (std::uint64_t i = 0; i < 30; ++i) {
    const auto done = next_completion(pair.client.send_cq.get());
    ASSERT_TRUE(done);
    EXPECT_EQ(done->wr_id, i);
    EXPECT_EQ(done->status, IBV_WC_SUCCESS) << i;
  }
  EXPECT_TRUE(pair.client.memory->holds(9, 0, 400'000));
  EXPECT_TRUE(pair.server.memory->holds(9, 0, 400'000));
}

TEST(SoftnicLink, APollShowsAllReadsThatAreDue) {
  // Four of them at a time are outstanding, and each waits for one before it.
  Pair pair(on("link0"), on("link1"));
  for (int i = 0; i < 100; ++i) {  // so that the device's own thread leaves them to this one
    ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 8), 0);
    ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  }
  for (int i = 0; i < 40; ++i) ASSERT_EQ(pair.client.post(IBV_WR_RDMA_READ, pair.server.address(), 0, 8), 0);
  ::usleep(700);
  ibv_wc completions[40];
  EXPECT_EQ(ibv_poll_cq(pair.client.send_cq.get(), 40, completions), 40);
}

TEST(SoftnicLink, APollShowsWhatIsDueWhileTheDevicesThreadCopies) {
  // 200 us one way. That thread copies for longer, as the program is armed for an event.
  EndOptions large = on("mid0");
  large.buffer_bytes = 64u << 20;
  large.events = true;
  Pair pair(large, large);
  for (int round = 0; round < 4; ++round) {
    ASSERT_EQ(ibv_req_notify_cq(pair.client.send_cq.get(), 0), 0);
    ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 8, 1), 0);
    ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 64u << 20, 2), 0);
    ::usleep(1000);
    ibv_wc completion;
    ASSERT_EQ(ibv_poll_cq(pair.client.send_cq.get(), 1, &completion), 1);
    EXPECT_EQ(completion.wr_id, 1u);
    EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  }
}

TEST(SoftnicLink, AProgramThatSleepsIsWoken) {
  EndOptions sleeps = on("link0");
  sleeps.events = true;
  Pair pair(sleeps, on("link1"));
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(ibv_req_notify_cq(pair.client.send_cq.get(), 0), 0);
    ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 64), 0);
    ibv_cq* cq = nullptr;
    void* user = nullptr;
    ASSERT_EQ(ibv_get_cq_event(pair.client.channel.get(), &cq, &user), 0);
    ibv_ack_cq_events(cq, 1);
    EXPECT_EQ(status_of(cq), IBV_WC_SUCCESS);
  }
}

TEST(SoftnicLink, AWriteArrivesThoughNobodyPolls) {
  Pair pair(on("link0"), on("link1"));
  pair.client.memory->fill(77);
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 8), 0);
  const auto start = steady_clock::now();
  const volatile std::uint8_t* last = pair.server.memory->data() + 7;
  while (*last != pair.client.memory->data()[7] && elapsed_ms(start) < 5000) ::sched_yield();
  EXPECT_TRUE(pair.server.memory->holds(77, 0, 8));
}

/// With a second QP in the context no post waits for its message's arrival.
Owned<ibv_qp> another_qp(End& end) {
  ibv_qp_init_attr attr{};
  attr.qp_type = IBV_QPT_RC;
  attr.send_cq = attr.recv_cq = end.send_cq.get();
  attr.cap = {1, 1, 1, 1, 0};
  return Owned<ibv_qp>(ibv_create_qp(end.pd.get(), &attr));
}

TEST(SoftnicLink, WritesArriveWhenDueThoughNobodyEverPolls) {
  EndOptions options = on("mid0");  // 200 us one way
  options.max_wr = 256;
  Pair pair(options, options);
  const Owned<ibv_qp> extra = another_qp(pair.client);
  const std::uint64_t late_before = counter("mid0", "arrival_late_more");
  constexpr int kWrites = 100;
  const volatile std::uint8_t& last = pair.server.memory->data()[63];
  for (int i = 1; i <= kWrites; ++i) {
    pair.client.memory->data()[63] = static_cast<std::uint8_t>(i);
    ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 64), 0);
    const auto start = steady_clock::now();
    while (last != i && elapsed_ms(start) < 5000) ::usleep(100);
    ASSERT_EQ(last, i);
    ::usleep(1000);
  }
  // With the thread's slow ticks alone, of 10 ms, nine in ten are later than 1 ms.
  EXPECT_LT(counter("mid0", "arrival_late_more") - late_before, kWrites / 2u);
}

TEST(SoftnicLink, ErrorsComeInOrderAsWell) {
  Pair pair(on("link0"), on("link1"));
  Address wrong = pair.server.address();
  wrong.rkey += 1;
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 64, 1), 0);
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, wrong, 0, 64, 2), 0);
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 64, 3), 0);
  const ibv_wc_status expected[] = {IBV_WC_SUCCESS, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR};
  for (std::uint64_t i = 0; i < 3; ++i) {
    const auto done = next_completion(pair.client.send_cq.get());
    ASSERT_TRUE(done);
    EXPECT_EQ(done->wr_id, i + 1);
    EXPECT_EQ(done->status, expected[i]);
  }
}

/// A program that is held up for 60 ms, finds what it posted done, and posts as much again, twice
/// over. 50 kB take 5 ms, a round trip 10 ms, and reactions of up to 60 s do not count.
struct HeldUp {
  ibv_wr_opcode opcode;
  int requests;
  int told_every;    ///< one in so many tells of its completion
  double due_ms[2];  ///< of what the posts of each round answer, added up, after the first post

  /// `judged`: the program was not held up while it posted as well.
  void run(bool& judged) const {
    EndOptions client = on("calm0");
    EndOptions server = on("calm1");
    client.rd_atomic = server.rd_atomic = 2;
    client.signal_all = false;
    Pair pair(client, server);
    steady_clock::time_point posted;
    judged = true;
    const auto post_all = [&] {
      const auto begin = steady_clock::now();
      for (int i = 1; i <= requests; ++i) {
        ibv_sge sge = pair.client.memory->sge(0, 50'000);
        ibv_send_wr request = pair.client.request(opcode, pair.server.address(), sge);
        request.send_flags = i % told_every == 0 ? IBV_SEND_SIGNALED : 0;
        ASSERT_EQ(pair.client.post(request), 0);
        if (posted == steady_clock::time_point{}) posted = steady_clock::now();
      }
      judged = judged && elapsed_ms(begin) < 4;
    };
    const int told = requests / told_every;
    post_all();
    for (const double due : due_ms) {
      ::usleep(60'000);
      ibv_wc completions[4];
      ASSERT_EQ(ibv_poll_cq(pair.client.send_cq.get(), 4, completions), told);
      const std::uint64_t before = counter("calm0", "reaction_ns");
      const double polled_ms = elapsed_ms(posted);
      post_all();
      const double reaction_ms = static_cast<double>(counter("calm0", "reaction_ns") - before) / 1e6;
      if (judged) {
        EXPECT_GE(reaction_ms, requests * polled_ms - due - 0.001);
      }
    }
    for (int i = 0; i < told; ++i) ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  }
};

void judge(const HeldUp& program) {
  bool judged = false;
  for (int i = 0; i < 30 && !judged; ++i) program.run(judged);
  EXPECT_TRUE(judged) << "this machine never let a program post its requests within 4 ms";
}

TEST(SoftnicLink, AProgramThatWasHeldUpAnswersOneCompletionAfterTheOther) {
  judge({IBV_WR_RDMA_WRITE, 2, 1, {15 + 20, 30 + 35}});
  judge({IBV_WR_RDMA_READ, 2, 1, {15 + 20, 30 + 35}});
}

/// The first two of the four posts could have been made with the first completion already.
TEST(SoftnicLink, APostStandsInForOneThatIsDone) {
  judge({IBV_WR_RDMA_WRITE, 4, 2, {2 * 20 + 2 * 30, 2 * 40 + 2 * 50}});
}

/// Each completion is answered where the send queue has no room for more.
TEST(SoftnicLink, APostIntoAFullQueueAnswers) {
  for (const std::uint32_t depth : {1u, 2u, 3u, 4u}) {
    EndOptions client = on("calm0");
    client.max_wr = depth;
    Pair pair(client, on("calm1"));
    for (std::uint32_t i = 0; i < depth; ++i) {
      ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 8), 0);
    }
    for (int i = 0; i < 5; ++i) {
      ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
      ::usleep(1000);
      const std::uint64_t before = counter("calm0", "reaction_ns");
      ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 8), 0);
      EXPECT_GE(counter("calm0", "reaction_ns") - before, 1'000'000u) << "depth " << depth << ", round " << i;
    }
    for (std::uint32_t i = 0; i < depth; ++i) ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  }
}

TEST(SoftnicLink, CountsProgramsThatAreSlow) {
  Pair pair(on("link0"), on("link1"));
  const std::uint64_t before = counter("link0", "reactions_late");
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 8), 0);
    ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
    ::usleep(1000);
  }
  EXPECT_EQ(counter("link0", "reactions_late") - before, 2u) << "the first answers nothing";
}

TEST(SoftnicLink, CountsWhatItDoes) {
  Pair pair(on("link0"), on("link1"));
  const std::uint64_t before = counter("link0", "messages");
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 8), 0);
    ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  }
  EXPECT_EQ(counter("link0", "messages"), before + 10);
  std::uint64_t arrivals = 0;
  std::size_t names = 0;
  DIR* folder = ::opendir("/sys/class/infiniband/link0/ports/1/hw_counters");
  ASSERT_NE(folder, nullptr);
  while (const dirent* entry = ::readdir(folder)) {
    const std::string name = entry->d_name;
    ++names;
    if (name.rfind("arrival_late_", 0) == 0 && name != "arrival_late_ns") arrivals += counter("link0", name);
  }
  EXPECT_EQ(::closedir(folder), 0);
  EXPECT_EQ(names, 2 + 7 + 2 * 18u);
  EXPECT_GE(arrivals, 10u);
  EXPECT_EQ(run_again("link0:rate=2GB/s", "--messages=link0").out, "0\n") << "other settings, another port";
  EXPECT_EQ(counter("soft0", "messages"), ~0ull) << "a device without a model has no counters";
}

TEST(SoftnicLink, SaysThatItIsSimulated) {
  Owned<ibv_context> link = open_device("link0");
  Owned<ibv_context> plain = open_device("soft0");
  ibv_device_attr attr;
  ASSERT_EQ(ibv_query_device(link.get(), &attr), 0);
  EXPECT_NE(std::strstr(attr.fw_ver, "simulated"), nullptr);
  ASSERT_EQ(ibv_query_device(plain.get(), &attr), 0);
  EXPECT_EQ(std::strstr(attr.fw_ver, "simulated"), nullptr);
}

TEST(SoftnicLink, TwoProcessesShareThePort) {
  const auto send = [] {
    Pair pair(on("slow1"), on("slow1"));
    for (int i = 0; i < 16; ++i) {
      ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 100'000), 0);
    }
    for (int i = 0; i < 16; ++i) ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  };
  const std::uint64_t before = counter("slow1", "messages");
  SecondProcess second([&](int socket) {
    tell(socket, 1);
    send();
    tell(socket, counter("slow1", "messages"));
    hear<int>(socket);
  });
  hear<int>(second.socket());
  send();
  EXPECT_GE(hear<std::uint64_t>(second.socket()), before + 16);
  EXPECT_EQ(counter("slow1", "messages"), before + 32);
  tell(second.socket(), 0);
  EXPECT_EQ(second.wait(), 0);
}

TEST(SoftnicLink, WrongOptionsAreNamed) {
  for (const char* text : {"rate=12.5", "rate=-1GB/s", "rate=12.5 GB/s", "latency=2", "latency=2xs", "mtu=9000",
                           "header=-1", "slow=0", "copy=none", "fault=melt", "fault=flip:every=0", "fault=flip:p=2",
                           "fault=flip:op=sing", "fault=flip:every", "fault=flip:when=now"}) {
    const Output output = run_again(std::string("soft0:") + text, "--list-devices");
    EXPECT_EQ(output.out.find("soft"), std::string::npos) << text;
    EXPECT_EQ(output.err.rfind("softnic: SOFTNIC '", 0), 0u) << text << ": " << output.err;
  }
}

}  // namespace
}  // namespace softnic_test
