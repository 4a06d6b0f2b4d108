#include "gdrperf/verbs/port_counters.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/base/file.h"
#include "gdrperf/base/unique_fd.h"

namespace gdrperf::verbs {
namespace {

bool has_one_of(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

/// Of hundreds that a driver has, a queue's and a priority's own among them.
bool is_of_the_wire(std::string_view name) {
  return has_one_of(
      name, {"pause", "pfc", "ecn", "cnp", "discard", "symbol", "crc", "roce", "dropped_phy", "outbound_stalled"});
}

/// One request to the driver of an interface. The structures end in as many elements as they say.
class DriverStatistics {
 public:
  explicit DriverStatistics(const std::string& interface) : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    interface.copy(request_.ifr_name, sizeof request_.ifr_name - 1);
  }
  Counters read() {
    const std::uint32_t count = this->count();
    if (count == 0 || count > kMost) return {};
    std::vector<std::byte> names(sizeof(ethtool_gstrings) + std::size_t{count} * ETH_GSTRING_LEN);
    const std::uint32_t ask_names[] = {ETHTOOL_GSTRINGS, ETH_SS_STATS, count};
    static_assert(sizeof ask_names == sizeof(ethtool_gstrings));
    std::memcpy(names.data(), ask_names, sizeof ask_names);
    std::vector<std::byte> values(sizeof(ethtool_stats) + std::size_t{count} * sizeof(std::uint64_t));
    const std::uint32_t ask_values[] = {ETHTOOL_GSTATS, count};
    static_assert(sizeof ask_values == sizeof(ethtool_stats));
    std::memcpy(values.data(), ask_values, sizeof ask_values);
    if (!ask(names.data()) || !ask(values.data())) return {};
    Counters counters;
    for (std::size_t i = 0; i < count; ++i) {
      const char* text = reinterpret_cast<const char*>(names.data()) + sizeof(ethtool_gstrings) + i * ETH_GSTRING_LEN;
      const std::string name(text, ::strnlen(text, ETH_GSTRING_LEN));
      if (!is_of_the_wire(name)) continue;
      std::memcpy(&counters[name], values.data() + sizeof(ethtool_stats) + i * sizeof(std::uint64_t),
                  sizeof(std::uint64_t));
    }
    return counters;
  }

 private:
  static constexpr std::uint32_t kMost = 1u << 16;

  bool ask(void* about) {
    request_.ifr_data = static_cast<char*>(about);
    return socket_.get() >= 0 && ::ioctl(socket_.get(), SIOCETHTOOL, &request_) == 0;
  }
  std::uint32_t count() {
    struct {
      std::uint32_t command = ETHTOOL_GSSET_INFO;
      std::uint32_t reserved = 0;
      std::uint64_t mask = 1ull << ETH_SS_STATS;
      std::uint32_t count = 0;
    } set;
    static_assert(offsetof(decltype(set), count) == sizeof(ethtool_sset_info));
    return ask(&set) && set.mask != 0 ? set.count : 0;
  }

  UniqueFd socket_;
  ifreq request_{};
};

/// Errors of the function's PCIe link, by severity: the last line of each file is the sum (Linux,
/// Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats).
void add_link_errors(const std::string& function, Counters& counters) {
  for (const char* severity : {"correctable", "nonfatal", "fatal"}) {
    std::ifstream file(fmt::format("{}/aer_dev_{}", function, severity));
    std::string name;
    std::uint64_t value = 0;
    while (file >> name >> value) {
      if (name.starts_with("TOTAL_ERR")) counters[fmt::format("aer_{}", severity)] = value;
    }
  }
}

}  // namespace

bool counts_trouble(std::string_view name) {
  return has_one_of(name, {"err",    "discard",    "drop",      "retrans",   "out_of_sequence", "timeout", "symbol",
                           "downed", "nak",        "retry",     "integrity", "overrun",         "adp_ret", "xmit_wait",
                           "cnp",    "ecn_marked", "duplicate", "pause",     "out_of_buffer",   "aer_"});
}

Counters read_port_counters(const std::string& folder) {
  Counters counters;
  if (const std::string interface = read_line_or_empty(folder + "/gid_attrs/ndevs/0"); !interface.empty())
    counters = DriverStatistics(interface).read();
  for (const char* kind : {"/counters", "/hw_counters"}) {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder + kind, none)) {
      const std::string name = entry.path().filename();
      // Histograms of the software device: of no NIC, and many.
      if (name.find("_late_") != std::string::npos) continue;
      const std::string text = read_line_or_empty(entry.path());
      std::uint64_t value = 0;
      if (std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc()) counters[name] = value;
    }
  }
  add_link_errors(folder + "/../../device", counters);
  return counters;
}

Counters read_port_counters(const std::string& device, int port) {
  // A device names itself; no path is made of what is no name.
  if (device.empty() || device.find('/') != std::string::npos || device.front() == '.') return {};
  return read_port_counters(fmt::format("/sys/class/infiniband/{}/ports/{}", device, port));
}

}  // namespace gdrperf::verbs
