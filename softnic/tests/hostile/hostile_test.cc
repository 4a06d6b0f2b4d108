// Those who mean ill: sockets and memory that look like a peer's and are not, names that somebody
// else took. Nothing of it is mapped, nobody crashes, and whoever has friends still meets them.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "fixture.h"
#include "shared/segment/layout.h"
#include "host/process/names.h"
#include "shared/segment/sealed.h"
#include "users.h"
#include "host/process/wire.h"

namespace softnic_test {
namespace {

using namespace gdrperf;           // NOLINT: the device's own words for what is on the wire
using namespace gdrperf::softnic;  // NOLINT

constexpr uid_t kNobody = 65534;

void become_nobody() { become_user(kNobody); }

/// A block that nobody has, with a socket that listens there.
UniqueFd false_listener(std::uint32_t& block) {
  for (block = 1; block < 4096; ++block) {
    if (UniqueFd socket = listen_at(socket_name(block), 8)) return socket;
  }
  return {};
}

/// Answers one greeting with these descriptors.
void answer(int listener, int segment, int window, std::uint64_t window_bytes) {
  const UniqueFd connection = [listener] {
    while (true) {
      UniqueFd accepted(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
      if (accepted) return accepted;
      ::usleep(200);
    }
  }();
  WireRequest request;
  int fds[2];
  if (!receive_packet(connection.get(), &request, sizeof request, fds)) return;
  WireReply reply;
  reply.process_id = 4711;
  reply.window_bytes = window_bytes;
  const int shared[2] = {segment, window};
  reply.fd_count = window >= 0 ? 2 : 1;
  send_packet(connection.get(), &reply, sizeof reply, shared, reply.fd_count);
  char nothing;
  while (::recv(connection.get(), &nothing, 1, 0) > 0) {
  }
}

/// Completion of a WRITE to a QP of that block.
ibv_wc_status write_to(std::uint32_t block) {
  End end;
  Address peer = end.address();
  peer.qpn = make_qpn(block, 1);
  EXPECT_EQ(end.connect(peer), 0);
  EXPECT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, 0, 64), 0);
  return status_of(end.send_cq.get());
}

/// A segment as a peer's would be, whose QP 1 lets anybody write.
void fill_in(int fd, std::uint64_t bytes) {
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto& header = static_cast<Segment*>(mapped)->header;
  header.process_id = 4711;
  header.magic.store(kSegmentMagic);
  ::munmap(mapped, bytes);
}

UniqueFd unsealed_memory(std::uint64_t bytes) {
  UniqueFd fd(::memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  if (bytes >= sizeof(SegmentHeader)) fill_in(fd.get(), sizeof(SegmentHeader));
  return fd;
}

/// Everything that is no memory of the right size which keeps that size.
TEST(SoftnicHostile, CraftedDescriptorsAreNotMapped) {
  std::vector<UniqueFd> segments;
  segments.push_back(unsealed_memory(0));
  segments.push_back(unsealed_memory(4096));
  segments.push_back(unsealed_memory(kSegmentBytes));  // could be cut off later
  segments.push_back(sealed_memory("hostile", 4096));
  fill_in(segments.back().get(), 4096);
  segments.push_back(sealed_memory("hostile", kSegmentBytes * 2));
  segments.push_back(UniqueFd(::open("/dev/zero", O_RDWR | O_CLOEXEC)));
  segments.push_back(UniqueFd(::open("/proc/self/mem", O_RDWR | O_CLOEXEC)));
  segments.push_back(UniqueFd(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  for (std::size_t i = 0; i < segments.size(); ++i) {
    ASSERT_TRUE(segments[i]);
    std::uint32_t block = 0;
    const UniqueFd listener = false_listener(block);
    ASSERT_TRUE(listener);
    SecondProcess liar([&](int) { answer(listener.get(), segments[i].get(), -1, 0); });
    EXPECT_EQ(write_to(block), IBV_WC_RETRY_EXC_ERR) << "descriptor " << i;
  }
}

/// The same for the window, where the segment is right: no window then.
TEST(SoftnicHostile, ACraftedWindowIsNotMapped) {
  const UniqueFd segment = sealed_memory("hostile", kSegmentBytes);
  fill_in(segment.get(), sizeof(SegmentHeader));
  for (const std::uint64_t bytes :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{4096}, kWindowBytes, ~std::uint64_t{0}}) {
    std::uint32_t block = 0;
    const UniqueFd listener = false_listener(block);
    const UniqueFd window = unsealed_memory(4096);
    SecondProcess liar([&](int) { answer(listener.get(), segment.get(), window.get(), bytes); });
    EXPECT_EQ(write_to(block), IBV_WC_RETRY_EXC_ERR) << bytes;
  }
}

/// Another user's process offers what would be right for one of ours.
TEST(SoftnicHostile, NothingOfAnotherUserIsMapped) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  SecondProcess liar([](int socket) {
    become_nobody();
    std::uint32_t block = 0;
    const UniqueFd listener = false_listener(block);
    const UniqueFd segment = sealed_memory("hostile", kSegmentBytes);
    fill_in(segment.get(), sizeof(SegmentHeader));
    tell(socket, block);
    std::thread([&] { answer(listener.get(), segment.get(), -1, 0); }).detach();
    hear<int>(socket);
  });
  const auto block = hear<std::uint32_t>(liar.socket());
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(write_to(block), IBV_WC_RETRY_EXC_ERR);
  const std::string words = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(words.find("peer refused: it is a process of user 65534"), std::string::npos) << words;
}

/// Binds every plain name that a process could have.
std::vector<UniqueFd> take_all_names() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  std::vector<UniqueFd> taken;
  for (std::uint32_t block = 0; block < 4096; ++block) taken.push_back(listen_at(socket_name(block), 1));
  return taken;
}

TEST(SoftnicHostile, WhoTakesAllNamesStopsNobody) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  SecondProcess squatter([](int socket) {
    become_nobody();
    const auto taken = take_all_names();
    tell(socket, 1);
    hear<int>(socket);
  });
  ASSERT_EQ(hear<int>(squatter.socket()), 1);
  std::uint32_t block = 0;
  ASSERT_FALSE(false_listener(block)) << block;
  SecondProcess both([](int) { meet_a_friend(1); });
  EXPECT_EQ(both.wait(), 0);
}

std::string port_name_of(const std::string& device) {
  std::ifstream table("/proc/self/net/unix");
  for (std::string line; std::getline(table, line);) {
    const std::size_t at = line.find("@gdrperf-softnic-port.");
    if (at != std::string::npos && line.find("." + device + ".") != std::string::npos) return line.substr(at + 1);
  }
  return {};
}

std::uint64_t messages_of(const std::string& device) {
  std::ifstream file("/sys/class/infiniband/" + device + "/ports/1/hw_counters/messages");
  std::uint64_t count = 0;
  file >> count;
  return count;
}

/// A modelled port's name taken by another user: this one's processes share a port all the same.
TEST(SoftnicHostile, WhoTakesAPortsNameStopsNobody) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  std::string name;
  {
    SecondProcess first([](int socket) {
      const auto context = open_device("link0");
      tell(socket, 1);
      hear<int>(socket);
    });
    ASSERT_EQ(hear<int>(first.socket()), 1);
    name = port_name_of("link0");
  }
  ASSERT_FALSE(name.empty());
  SecondProcess squatter([&name](int socket) {
    become_nobody();
    UniqueFd listener;
    while (!(listener = listen_at(name, 8))) ::usleep(200);  // the first one's socket closes
    const UniqueFd memory = unsealed_memory(0);
    tell(socket, 1);
    while (true) {
      const UniqueFd client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      const int shared = memory.get();
      const std::uint64_t magic = 0x74726f70736f6674ull;
      if (client) send_packet(client.get(), &magic, sizeof magic, &shared, 1);
      ::usleep(200);
    }
  });
  ASSERT_EQ(hear<int>(squatter.socket()), 1);
  SecondProcess both([](int) {
    SecondProcess other([](int socket) {
      const auto context = open_device("link0");
      tell(socket, 1);
      hear<int>(socket);
      tell(socket, messages_of("link0"));
    });
    ASSERT_EQ(hear<int>(other.socket()), 1);
    EndOptions there;
    there.device = "link1";
    EndOptions here;
    here.device = "link0";
    Pair pair(here, there);
    ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 64), 0);
    EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
    EXPECT_GE(messages_of("link0"), 1u);
    tell(other.socket(), 1);
    EXPECT_GE(hear<std::uint64_t>(other.socket()), 1u);
  });
  EXPECT_EQ(both.wait(), 0);
}

/// Longer, shorter, empty, with too many descriptors, of no kind there is: each ends that connection,
/// and the process serves the next.
TEST(SoftnicHostile, HalfAndOverlongMessagesEndAConnection) {
  End end;
  const std::uint32_t block = qpn_block(end.address().qpn);
  for (std::size_t size = 0; size < 3 * sizeof(WireRequest); size += 4) {
    const UniqueFd socket = connect_to(socket_name(block), is_own_user);
    ASSERT_TRUE(socket);
    std::vector<std::uint8_t> packet(size, 0xee);
    const int fds[2] = {socket.get(), socket.get()};
    send_packet(socket.get(), packet.data(), size, fds, size % 8 == 0 ? 2 : 0);
  }
  Pair pair;
  ASSERT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, pair.server.address(), 0, 64), 0);
  EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  SecondProcess other([](int socket) {
    End mine;
    meet_parent(mine, socket);
    hear<int>(socket);
  });
  const Address peer = meet(end, other);
  ASSERT_EQ(end.post(IBV_WR_RDMA_WRITE, peer, 0, 64), 0);
  EXPECT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS);
}

/// Limits that are in the way are told by name, and the errno is the caller's.
TEST(SoftnicHostile, LimitsAreNamed) {
  // As g++ and clang++ tell it.
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "sanitizers need address space and descriptors of their own";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "sanitizers need address space and descriptors of their own";
#endif
#endif
  struct Case {
    __rlimit_resource_t limit;
    rlim_t value;
    int error;
    const char* words;
  };
  for (const Case& c : {Case{RLIMIT_NOFILE, 8, EMFILE, "ulimit -n"}, Case{RLIMIT_AS, 4ull << 30, ENOMEM, "ulimit -v"},
                        Case{RLIMIT_FSIZE, 1 << 20, EFBIG, "ulimit -f"}}) {
    SecondProcess limited([&c](int) {
      ibv_device** list = ibv_get_device_list(nullptr);
      const rlimit limit{c.value, c.value};
      ASSERT_EQ(::setrlimit(c.limit, &limit), 0);
      char words[512] = {};
      int ends[2] = {-1, -1};
      ::close(4);
      ::close(5);
      ASSERT_EQ(::pipe(ends), 0);
      ::dup2(ends[1], STDERR_FILENO);
      for (int used = 0; c.limit == RLIMIT_NOFILE && used >= 0;) used = ::dup(ends[1]);
      errno = 0;
      ibv_context* context = ibv_open_device(list[0]);
      const int error = errno;
      EXPECT_EQ(context, nullptr);
      EXPECT_EQ(error, c.error);
      ASSERT_GT(::read(ends[0], words, sizeof words - 1), 0);
      EXPECT_NE(std::strstr(words, c.words), nullptr) << words;
      ibv_free_device_list(list);
    });
    EXPECT_EQ(limited.wait(), 0) << c.words;
  }
}

/// Programs print errno, though the call's answer is what counts.
TEST(SoftnicHostile, AModifyThatFailsLeavesItsErrno) {
  End end;
  errno = EFAULT;
  const int error = end.to(IBV_QPS_RTS);
  EXPECT_NE(error, 0);
  EXPECT_EQ(errno, error);
}

}  // namespace
}  // namespace softnic_test
