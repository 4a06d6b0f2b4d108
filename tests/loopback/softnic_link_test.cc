// The link model and the faults: what they promise whatever the machine's load
// is. Due times are lower bounds here; how exact they are is bench's business.

#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>

#include "softnic_fixture.h"

namespace softnic_test {
namespace {

using std::chrono::steady_clock;

EndOptions on(const char* device) {
  EndOptions options;
  options.device = device;
  options.max_wr = 64;
  return options;
}

std::uint64_t counter(const std::string& device, const std::string& name) {
  std::ifstream file("/sys/class/infiniband/" + device + "/ports/1/hw_counters/" + name);
  std::uint64_t value = ~0ull;
  file >> value;
  return value;
}

double elapsed_ms(steady_clock::time_point since) {
  return std::chrono::duration<double, std::milli>(steady_clock::now() - since).count();
}

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
  EXPECT_EQ(names, 2 + 4 + 2 * 18u);
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

// --- faults

/// What a fault that concerns each message does to 4 KiB of a WRITE, READ, SEND.
struct Damage {
  const char* device;
  std::size_t wrong_low, wrong_high;  ///< bytes that differ from what was sent
};

std::size_t wrong_bytes(const std::uint8_t* data, const std::uint8_t* expected, std::size_t length) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < length; ++i) wrong += data[i] != expected[i] ? 1 : 0;
  return wrong;
}

class SoftnicFaults : public ::testing::TestWithParam<Damage> {};

TEST_P(SoftnicFaults, DamageDataAndSaySuccess) {
  const Damage damage = GetParam();
  constexpr std::uint32_t kLength = 4096;
  const std::uint64_t before = counter(damage.device, "faults_injected");
  Pair pair(on(damage.device), on(damage.device));
  auto* mine = pair.client.memory->data();
  auto* theirs = pair.server.memory->data();
  const auto check = [&](const char* what, const std::uint8_t* got, const std::uint8_t* sent) {
    const std::size_t wrong = wrong_bytes(got, sent, kLength);
    std::printf("    %-9s %-6s %4zu of %u bytes wrong\n", damage.device, what, wrong, kLength);
    EXPECT_GE(wrong, damage.wrong_low) << what;
    EXPECT_LE(wrong, damage.wrong_high) << what;
  };
  for (std::size_t i = 0; i < kLength; ++i) mine[8192 + i] = static_cast<std::uint8_t>(i % 251 + 1);
  std::memset(theirs, 0, 32768);
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 8192, kLength), 0);
  ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  check("WRITE", theirs + 8192, mine + 8192);

  std::memset(theirs, 0, 32768);
  for (std::size_t i = 0; i < kLength; ++i) theirs[8192 + i] = static_cast<std::uint8_t>(i % 251 + 1);
  std::memset(mine, 0, 32768);
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_READ, pair.server.address(), 8192, kLength), 0);
  ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  check("READ", mine + 8192, theirs + 8192);

  for (std::size_t i = 0; i < kLength; ++i) mine[8192 + i] = static_cast<std::uint8_t>(i % 251 + 1);
  std::memset(theirs, 0, 32768);
  ASSERT_EQ(pair.server.post_recv(8192, kLength), 0);
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, pair.server.address(), 8192, kLength), 0);
  ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  check("SEND", theirs + 8192, mine + 8192);
  if (std::strcmp(damage.device, "drop0") == 0) {
    EXPECT_TRUE(stays_empty(pair.server.recv_cq.get()));
  } else {
    const auto received = next_completion(pair.server.recv_cq.get());
    ASSERT_TRUE(received);
    EXPECT_EQ(received->status, IBV_WC_SUCCESS);
    EXPECT_EQ(received->byte_len, kLength);
  }
  EXPECT_EQ(counter(damage.device, "faults_injected"), before + 3);
}

INSTANTIATE_TEST_SUITE_P(, SoftnicFaults,
                         ::testing::Values(Damage{"drop0", 4096, 4096}, Damage{"stale0", 4096, 4096},
                                           Damage{"flip0", 1, 1}, Damage{"trunc0", 2048, 2048},
                                           Damage{"misp0", 3000, 4096}, Damage{"delay0", 0, 0},
                                           Damage{"stall0", 0, 0}),
                         [](const auto& info) { return std::string(info.param.device); });

TEST(SoftnicFault, HitsEveryNthFromAMessageOn) {
  // some0: fault=stale:every=3:from=4:count=2:op=write
  Pair pair(on("some0"), on("some0"));
  std::string hit;
  for (int i = 0; i < 16; ++i) {
    std::memset(pair.client.memory->data(), i + 1, 64);
    ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 64), 0);
    ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
    hit += pair.server.memory->data()[0] == i + 1 ? '.' : 'x';
  }
  EXPECT_EQ(hit, "......x..x......");
}

TEST(SoftnicFault, RnrGoesAwayOrDoesNot) {
  // rnr0: for 10 ms
  EndOptions patient = on("rnr0");
  Pair pair(patient, patient);
  ASSERT_EQ(pair.server.post_recv(0, 64), 0);
  const auto start = steady_clock::now();
  ASSERT_EQ(pair.client.post(IBV_WR_SEND, pair.server.address(), 0, 64), 0);
  ASSERT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_GE(elapsed_ms(start), 10);
  EXPECT_EQ(status_of(pair.server.recv_cq.get()), IBV_WC_SUCCESS);

  EndOptions impatient = on("rnr0");
  impatient.rnr_retry = 0;
  Pair refused(impatient, impatient);
  ASSERT_EQ(refused.server.post_recv(0, 64), 0);
  ASSERT_EQ(refused.client.post(IBV_WR_SEND, refused.server.address(), 0, 64), 0);
  EXPECT_EQ(status_of(refused.client.send_cq.get()), IBV_WC_RNR_RETRY_EXC_ERR);
}

/// Replaces the file that SOFTNIC names, at once.
void write_file(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  std::ofstream(fresh) << text;
  ASSERT_EQ(::rename(fresh.c_str(), path.c_str()), 0);
}

TEST(SoftnicLive, FollowsItsFile) {
  char folder[] = "/tmp/softnic-live-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/devices";
  write_file(path, "# two devices\nsoft0\nsoft1 # the other\n");
  const Output output = run_again("@" + path, "--live=" + path);
  EXPECT_TRUE(output.out.ends_with("live ok\n")) << output.out << output.err;
  ::unlink(path.c_str());
  ::rmdir(folder);
}

TEST(SoftnicLink, WrongOptionsAreNamed) {
  for (const char* text : {"rate=12.5", "rate=-1GB/s", "rate=12.5 GB/s", "latency=2", "latency=2xs", "mtu=9000", "header=-1",
                           "slow=0", "copy=none", "fault=melt", "fault=flip:every=0", "fault=flip:p=2",
                           "fault=flip:op=sing", "fault=flip:every", "fault=flip:when=now"}) {
    const Output output = run_again(std::string("soft0:") + text, "--list-devices");
    EXPECT_EQ(output.out.find("soft"), std::string::npos) << text;
    EXPECT_EQ(output.err.rfind("softnic: SOFTNIC '", 0), 0u) << text << ": " << output.err;
  }
}

/// Does `action` and waits for the message about it on stderr.
bool complains(const std::function<void()>& action) {
  int ends[2];
  if (::pipe(ends) != 0) return false;
  const int before = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  action();
  pollfd readable{ends[0], POLLIN, 0};
  char text[512] = {};
  const bool came = ::poll(&readable, 1, 5000) > 0 && ::read(ends[0], text, sizeof text - 1) > 0;
  ::dup2(before, STDERR_FILENO);
  for (const int fd : {before, ends[0], ends[1]}) ::close(fd);
  return came && std::strstr(text, "nothing changes") != nullptr;
}

/// In a process whose SOFTNIC names `path`: what happens when that changes.
bool follows_file(const std::string& path) {
  const auto until = [](const auto& condition) {
    const auto start = steady_clock::now();
    while (!condition() && elapsed_ms(start) < 5000) ::usleep(1000);
    return condition();
  };
  Pair pair(on("soft0"), on("soft1"));
  pair.client.memory->fill(5);
  const auto write = [&] {
    std::memset(pair.server.memory->data(), 0, 64);
    EXPECT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 64), 0);
    return status_of(pair.client.send_cq.get());
  };
  const auto event_is = [&](ibv_event_type type) {
    ibv_async_event event{};
    if (ibv_get_async_event(pair.client.context.get(), &event) != 0) return false;
    ibv_ack_async_event(&event);
    return event.event_type == type && event.element.port_num == 1;
  };
  bool good = write() == IBV_WC_SUCCESS && pair.server.memory->holds(5, 0, 64);
  write_file(path, "soft0:fault=stale\nsoft1\n");
  good &= until([&] { return write() == IBV_WC_SUCCESS && !pair.server.memory->holds(5, 0, 64); });
  good &= complains([&] { write_file(path, "soft0:colour=red\n"); });
  write_file(path, "soft0:latency=20ms\nsoft1\n");
  good &= until([&] { return write() == IBV_WC_SUCCESS && pair.server.memory->holds(5, 0, 64); });
  const auto start = steady_clock::now();
  good &= write() == IBV_WC_SUCCESS && elapsed_ms(start) >= 40;
  write_file(path, "soft0:fail=reg_mr:EPERM\nsoft1\n");
  good &= until([&] {
    ibv_mr* mr = register_memory(pair.client.pd.get(), pair.client.memory->data(), 64, 0);
    if (mr != nullptr) ibv_dereg_mr(mr);
    return mr == nullptr && errno == EPERM;
  });
  write_file(path, "soft0:port=down\nsoft1\n");
  good &= event_is(IBV_EVENT_PORT_ERR) && write() == IBV_WC_RETRY_EXC_ERR;
  write_file(path, "soft0\nsoft1\n");
  good &= event_is(IBV_EVENT_PORT_ACTIVE);
  return good && !::testing::Test::HasFailure();
}

[[maybe_unused]] const bool live_part_is_set = (live_part = &follows_file, true);

}  // namespace
}  // namespace softnic_test
