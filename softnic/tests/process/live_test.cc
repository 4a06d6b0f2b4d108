// Devices that follow the file of SOFTNIC=@FILE.

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>

#include "transport/modelled_link.h"
#include "../../../tests/temporary_folder.h"

namespace softnic_test {
namespace {

using std::chrono::steady_clock;

/// Replaces the file that SOFTNIC names, at once.
void write_file(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  std::ofstream(fresh) << text;
  ASSERT_EQ(::rename(fresh.c_str(), path.c_str()), 0);
}

TEST(SoftnicLive, FollowsItsFile) {
  const gdrperf::TemporaryFolder folder;
  const std::string path = folder.path("devices");
  write_file(path, "# two devices\nsoft0:ports=2\nsoft1 # the other\n");
  const Output output = run_again("@" + path, "--live=" + path);
  EXPECT_TRUE(output.out.ends_with("live ok\n")) << output.out << output.err;
}

/// Does `action` and waits for the message about it on stderr.
bool complains(const std::function<void()>& action) {
  int ends[2];
  if (::pipe(ends) != 0) return false;
  const int before = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  action();
  // It may come in parts.
  pollfd readable{ends[0], POLLIN, 0};
  std::string text;
  while (!text.ends_with('\n') && ::poll(&readable, 1, 5000) > 0) {
    char part[512];
    const ssize_t got = ::read(ends[0], part, sizeof part);
    if (got <= 0) break;
    text.append(part, static_cast<std::size_t>(got));
  }
  ::dup2(before, STDERR_FILENO);
  for (const int fd : {before, ends[0], ends[1]}) ::close(fd);
  return text.find("nothing changes") != std::string::npos;
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
  const auto event_is = [&](ibv_event_type type, int port = 1) {
    ibv_async_event event{};
    if (ibv_get_async_event(pair.client.context.get(), &event) != 0) return false;
    ibv_ack_async_event(&event);
    return event.event_type == type && event.element.port_num == port;
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
  write_file(path, "soft0:ports=2,port2=down\nsoft1\n");
  good &= event_is(IBV_EVENT_PORT_ERR, 2);
  return good && !::testing::Test::HasFailure();
}

[[maybe_unused]] const bool live_part_is_set = (live_part = &follows_file, true);

}  // namespace
}  // namespace softnic_test
