// Runs the tests on the software device: executes itself again with the
// library preloaded when it is not.

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "fixture.h"

namespace {

/// One device for each setting, so that all tests run in one process.
constexpr const char* kDevices =
    "soft0;soft1;null0:mode=null;down0:port=down;nogid0:gid=none;"
    "fail0:fail=reg_mr:ENOMEM,fail=modify_qp:EIO;fail1:fail=create_qp:ENOSPC;stay0:move=never;agent0:move=never,kernel="
    "never;"
    "placed0:netdev=lo,mac=0a:1b:2c:3d:4e:5f,pci=0000:3B:00.0,numa=1;elsewhere0:netdev=eth9;"
    "calm0:rate=10MB/s,latency=5ms,react=60s;calm1:rate=10MB/s,latency=5ms,react=60s;"
    "far0:latency=20ms;mid0:latency=200us;slow0:rate=100MB/s;slow1:rate=100MB/s;"
    "link0:rate=1GB/s,latency=5us,header=82;link1:rate=1GB/s,latency=5us,header=82;"
    "drop0:fault=drop;stale0:fault=stale;flip0:fault=flip;trunc0:fault=truncate;misp0:fault=misplace;"
    "delay0:fault=delay:time=1ms;loss0:fault=loss:time=1ms;stall0:fault=stall:time=1ms;rnr0:fault=rnr;rnr1:fault=rnr:"
    "time=60s;"
    "tcp0:tcp=on,netdev=lo,shared=never;users0:peers=0+65533+65534;some0:fault=stale:every=3:from=4:count=2:op=write;"
    "ib0:link_layer=infiniband;ib1:link_layer=infiniband;"
    "two0:ports=2;half0:ports=2,port2=down;wide0:ports=2,latency=0us;twin0:ports=2,link_layer=infiniband;"
    "ece0:ece=0x15b3:0x7;"
    "mlx0:mlx5=on;mlx1:mlx5=on;mlxlink0:mlx5=on,rate=1GB/s,latency=20us;mlxlink1:mlx5=on,rate=1GB/s,latency=20us;"
    "mlxtcp0:mlx5=on,tcp=on,netdev=lo,shared=never;mlxdrop0:mlx5=on,fault=drop";

/// A TCP port that nobody has: of one that programs share, each may become the listener when another one ends.
std::string free_port() {
  const int socket = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  socklen_t length = sizeof address;
  const bool found = socket >= 0 && ::bind(socket, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                     ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  if (socket >= 0) ::close(socket);
  return found ? std::to_string(ntohs(address.sin6_port)) : "on";
}

std::string devices() {
  std::string text = kDevices;
  const std::string port = "tcp=" + free_port();
  for (std::size_t at = 0; (at = text.find("tcp=on", at)) != std::string::npos; at += port.size()) {
    text.replace(at, 6, port);
  }
  return text;
}

int list_devices() {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  for (int i = 0; list != nullptr && i < count; ++i) std::printf("%s\n", ibv_get_device_name(list[i]));
  if (list != nullptr) ibv_free_device_list(list);
  return 0;
}

/// Counts on `device` of a process with these settings.
int show_messages(const std::string& device) {
  std::ifstream file("/sys/class/infiniband/" + device + "/ports/1/hw_counters/messages");
  std::string count;
  std::getline(file, count);
  std::printf("%s\n", count.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* preloaded = std::getenv("LD_PRELOAD");
  if (preloaded == nullptr || std::strstr(preloaded, SOFTNIC_LIBRARY) == nullptr) {
    ::setenv("LD_PRELOAD", SOFTNIC_LIBRARY, 1);
    ::setenv("SOFTNIC", devices().c_str(), 1);
    const char* given = std::getenv("ASAN_OPTIONS");
    const std::string options =
        std::string("verify_asan_link_order=0") + (given != nullptr ? std::string(":") + given : "");
    ::setenv("ASAN_OPTIONS", options.c_str(), 1);
    ::execv("/proc/self/exe", argv);
    std::perror("execv");
    return 1;
  }
  if (argc == 2 && std::strcmp(argv[1], "--list-devices") == 0) return list_devices();
  if (argc == 2 && std::strncmp(argv[1], "--messages=", 11) == 0) return show_messages(argv[1] + 11);
  if (argc == 2 && std::strncmp(argv[1], "--live=", 7) == 0 && softnic_test::live_part != nullptr) {
    std::printf("live %s\n", softnic_test::live_part(argv[1] + 7) ? "ok" : "failed");
    return 0;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
