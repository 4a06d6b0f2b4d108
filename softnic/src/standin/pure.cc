#include <infiniband/verbs.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>

#include "abi/libc/forward.h"
#include "abi/verbs/compat.h"

/// Functions of libibverbs that look at no device: those that have a state, or may know more
/// than this one, are left to the real library; where there is none they are here.
namespace gdrperf::softnic {
namespace {

template <std::size_t kCount>
const char* name_of(const std::array<const char*, kCount>& names, int value) {
  return value >= 0 && static_cast<std::size_t>(value) < kCount ? names[static_cast<std::size_t>(value)] : "unknown";
}

template <typename F>
F* real(const char* name) {
  return reinterpret_cast<F*>(real_function(name));
}

constexpr std::array<const char*, IBV_WC_TM_RNDV_INCOMPLETE + 1> kStatusNames = {"success",
                                                                                 "local length error",
                                                                                 "local QP operation error",
                                                                                 "local EE context operation error",
                                                                                 "local protection error",
                                                                                 "Work Request Flushed Error",
                                                                                 "memory window bind error",
                                                                                 "bad response",
                                                                                 "local access error",
                                                                                 "remote invalid request error",
                                                                                 "remote access error",
                                                                                 "remote operation error",
                                                                                 "transport retry counter exceeded",
                                                                                 "RNR retry counter exceeded",
                                                                                 "local RDD violation",
                                                                                 "remote invalid RD request",
                                                                                 "aborted by the remote end",
                                                                                 "invalid EE context number",
                                                                                 "invalid EE context state",
                                                                                 "fatal error",
                                                                                 "response timeout",
                                                                                 "general error",
                                                                                 "tag matching error",
                                                                                 "tag matching rendezvous incomplete"};

constexpr std::array<const char*, IBV_EVENT_WQ_FATAL + 1> kEventNames = {
    "CQ error", "local work queue catastrophic error", "invalid request local work queue error",
    "local access violation work queue error", "communication established", "send queue drained",
    "path migration", "path migration error", "local catastrophic error", "port active", "port error", "LID change",
    "P_Key change", "SM change", "SRQ catastrophic error", "SRQ limit reached", "last WQE reached",
    "client reregistration", "GID change", "WQ fatal"};

constexpr std::array<const char*, 7> kNodeNames = {
    "unknown",  "InfiniBand channel adapter", "InfiniBand switch", "InfiniBand router", "iWARP NIC", "usNIC",
    "usNIC UDP"};

constexpr std::array<const char*, 6> kPortNames = {
    "no state change", "down", "init", "armed", "active", "active defer"};

/// InfiniBand specification, table of static rates: multiples of 2.5 Gb/s, and Mb/s.
struct Rate {
  ibv_rate rate;
  int multiple;
  int mbps;
};
constexpr Rate kRates[] = {
    {IBV_RATE_2_5_GBPS, 1, 2500},     {IBV_RATE_5_GBPS, 2, 5000},      {IBV_RATE_10_GBPS, 4, 10000},
    {IBV_RATE_14_GBPS, 6, 14062},     {IBV_RATE_20_GBPS, 8, 20000},    {IBV_RATE_25_GBPS, 10, 25781},
    {IBV_RATE_28_GBPS, 11, 28125},    {IBV_RATE_30_GBPS, 12, 30000},   {IBV_RATE_40_GBPS, 16, 40000},
    {IBV_RATE_50_GBPS, 20, 53125},    {IBV_RATE_56_GBPS, 22, 56250},   {IBV_RATE_60_GBPS, 24, 60000},
    {IBV_RATE_80_GBPS, 32, 80000},    {IBV_RATE_100_GBPS, 40, 103125}, {IBV_RATE_112_GBPS, 45, 112500},
    {IBV_RATE_120_GBPS, 48, 120000},  {IBV_RATE_168_GBPS, 67, 168750}, {IBV_RATE_200_GBPS, 80, 206250},
    {IBV_RATE_300_GBPS, 120, 309375}, {IBV_RATE_400_GBPS, 160, 425000}, {IBV_RATE_600_GBPS, 240, 637500},
    {kRate800, 320, 850000}, {kRate1200, 480, 1275000}};

}  // namespace
}  // namespace gdrperf::softnic

using namespace gdrperf::softnic;

extern "C" {
#pragma GCC visibility push(default)

const char* ibv_wc_status_str(ibv_wc_status status) {
  static const auto known = real<decltype(ibv_wc_status_str)>("ibv_wc_status_str");
  return known != nullptr ? known(status) : name_of(kStatusNames, status);
}
const char* ibv_event_type_str(ibv_event_type event) {
  static const auto known = real<decltype(ibv_event_type_str)>("ibv_event_type_str");
  return known != nullptr ? known(event) : name_of(kEventNames, event);
}
const char* ibv_node_type_str(ibv_node_type type) {
  static const auto known = real<decltype(ibv_node_type_str)>("ibv_node_type_str");
  return known != nullptr ? known(type) : name_of(kNodeNames, type);
}
const char* ibv_port_state_str(ibv_port_state state) {
  static const auto known = real<decltype(ibv_port_state_str)>("ibv_port_state_str");
  return known != nullptr ? known(state) : name_of(kPortNames, state);
}

int ibv_rate_to_mult(ibv_rate rate) {
  for (const Rate& it : kRates) {
    if (it.rate == rate) return it.multiple;
  }
  return -1;
}
ibv_rate mult_to_ibv_rate(int multiple) {
  for (const Rate& it : kRates) {
    if (it.multiple == multiple) return it.rate;
  }
  return IBV_RATE_MAX;
}
int ibv_rate_to_mbps(ibv_rate rate) {
  for (const Rate& it : kRates) {
    if (it.rate == rate) return it.mbps;
  }
  return -1;
}
ibv_rate mbps_to_ibv_rate(int mbps) {
  for (const Rate& it : kRates) {
    if (it.mbps == mbps) return it.rate;
  }
  return IBV_RATE_MAX;
}

// Registered memory is never pinned, so that children need no protection from it.
int ibv_fork_init(void) {
  const auto known = real<decltype(ibv_fork_init)>("ibv_fork_init");
  return known != nullptr ? known() : 0;
}
ibv_fork_status ibv_is_fork_initialized(void) {
  const auto known = real<decltype(ibv_is_fork_initialized)>("ibv_is_fork_initialized");
  return known != nullptr ? known() : IBV_FORK_UNNEEDED;
}
// Not in a public header.
int ibv_dontfork_range(void* base, std::size_t size);
int ibv_dontfork_range(void* base, std::size_t size) {
  const auto known = real<decltype(ibv_dontfork_range)>("ibv_dontfork_range");
  return known != nullptr ? known(base, size) : 0;
}
int ibv_dofork_range(void* base, std::size_t size);
int ibv_dofork_range(void* base, std::size_t size) {
  const auto known = real<decltype(ibv_dofork_range)>("ibv_dofork_range");
  return known != nullptr ? known(base, size) : 0;
}

const char* ibv_get_sysfs_path(void);
const char* ibv_get_sysfs_path(void) { return "/sys"; }

/// The file's text without a line end; -1 and errno when it cannot be read.
int ibv_read_sysfs_file(const char* folder, const char* file, char* text, std::size_t size);
int ibv_read_sysfs_file(const char* folder, const char* file, char* text, std::size_t size) {
  const int fd = ::open((std::string(folder) + "/" + file).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t length = ::read(fd, text, size);
  ::close(fd);
  if (length > 0 && text[length - 1] == '\n') --length;
  if (length >= 0 && static_cast<std::size_t>(length) < size) text[length] = '\0';
  return static_cast<int>(length);
}

#pragma GCC visibility pop
}
