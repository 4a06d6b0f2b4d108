#include "gdrperf/verbs/gid.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/file.h"
#include "gdrperf/verbs/compat.h"
#include "verbs/sysfs.h"

namespace gdrperf::verbs {
namespace {

bool is_ipv4_mapped(const ibv_gid& gid) {
  static constexpr std::array<std::uint8_t, 12> kPrefix = {0, 0, 0, 0, 0,    0,
                                                           0, 0, 0, 0, 0xff, 0xff};
  return std::equal(kPrefix.begin(), kPrefix.end(), gid.raw);
}

bool is_zero(const ibv_gid& gid) {
  return std::all_of(std::begin(gid.raw), std::end(gid.raw),
                     [](std::uint8_t byte) { return byte == 0; });
}

bool is_loopback(const Gid& gid) {
  if (gid.ipv4) return gid.raw.raw[12] == 127;
  return gid.address == "::1";
}

/// Addresses that exist on every machine that runs containers and lead to none
/// of the others.
bool is_container_bridge(const Gid& gid) {
  for (const std::string_view prefix : {"docker", "br-", "virbr", "cni", "podman"}) {
    if (gid.netdev.starts_with(prefix)) return true;
  }
  return gid.ipv4 && gid.raw.raw[12] == 172 && gid.raw.raw[13] == 17;
}

/// Lower is better. Families first, reach within a family second.
int cost(const Gid& gid) {
  int family = 0;
  switch (gid.type) {
    case GidType::kRoceV2:
    case GidType::kIwarp: family = 0; break;
    case GidType::kRoceV1: family = 4; break;
    case GidType::kInfiniBand: family = 8; break;
  }
  if (gid.type != GidType::kInfiniBand) {
    if (gid.link_local)
      family += gid.ipv4 ? 2 : 3;
    else if (!gid.ipv4)
      family += 1;
  }
  const int reach = is_loopback(gid) ? 2 : is_container_bridge(gid) ? 1 : 0;
  return family * 4 + reach;
}

std::string describe(const Gid& gid) {
  if (gid.type == GidType::kInfiniBand) return "InfiniBand GID";
  return fmt::format("{} over {}{}", to_string(gid.type), gid.link_local ? "link-local " : "",
                     gid.ipv4 ? "IPv4" : "IPv6");
}

std::vector<Gid> table_from_sysfs(const std::string& ports_folder, int table_length) {
  std::vector<Gid> table;
  for (int index = 0; index < table_length; ++index) {
    ibv_gid raw{};
    const std::string text = read_line_or_empty(fmt::format("{}/gids/{}", ports_folder, index));
    if (::inet_pton(AF_INET6, text.c_str(), raw.raw) != 1 || is_zero(raw)) continue;
    const std::string type =
        read_line_or_empty(fmt::format("{}/gid_attrs/types/{}", ports_folder, index));
    const bool ethernet = read_line_or_empty(ports_folder + "/link_layer") == "Ethernet";
    const GidType kind = type == "RoCE v2" ? GidType::kRoceV2
                         : ethernet        ? GidType::kRoceV1
                                           : GidType::kInfiniBand;
    table.push_back(
        make_gid(index, kind, raw,
                 read_line_or_empty(fmt::format("{}/gid_attrs/ndevs/{}", ports_folder, index))));
  }
  return table;
}

Gid from_entry(const ibv_gid_entry& entry) {
  GidType type = GidType::kInfiniBand;
  if (entry.gid_type == IBV_GID_TYPE_ROCE_V1) type = GidType::kRoceV1;
  if (entry.gid_type == IBV_GID_TYPE_ROCE_V2) type = GidType::kRoceV2;
  char netdev[IF_NAMESIZE] = "";
  if (entry.ndev_ifindex != 0) ::if_indextoname(entry.ndev_ifindex, netdev);
  return make_gid(static_cast<int>(entry.gid_index), type, entry.gid, netdev);
}

Error empty_table_error() {
  return Error(ExitCode::kEnvironment, "the port has no GID",
               "give its network interface an address (ip addr add ADDRESS/PREFIX dev NETDEV) and "
               "bring it up; gdrperf devices lists the GIDs");
}

const Gid& at_index(std::span<const Gid> table, int index, std::string_view flag) {
  if (table.empty()) throw empty_table_error();
  std::vector<std::string> there;
  for (const Gid& gid : table) {
    if (gid.index == index) return gid;
    there.push_back(fmt::format("{} ({}, {})", gid.index, family_name(gid), gid.address));
  }
  throw usage_error(fmt::format("{} {}: the port has no GID with that index; it has {}", flag,
                                index, fmt::join(there, ", ")));
}

}  // namespace

const char* to_string(GidType type) {
  switch (type) {
    case GidType::kInfiniBand: return "InfiniBand";
    case GidType::kRoceV1: return "RoCE v1";
    case GidType::kRoceV2: return "RoCE v2";
    case GidType::kIwarp: return "iWARP";
  }
  return "unknown";
}

Gid make_gid(int index, GidType type, const ibv_gid& raw, std::string netdev) {
  Gid gid;
  gid.index = index;
  gid.type = type;
  gid.raw = raw;
  gid.netdev = std::move(netdev);
  gid.ipv4 = is_ipv4_mapped(raw);
  char text[INET6_ADDRSTRLEN] = "";
  if (gid.ipv4) {
    ::inet_ntop(AF_INET, raw.raw + 12, text, sizeof text);
    gid.link_local = raw.raw[12] == 169 && raw.raw[13] == 254;
  } else {
    ::inet_ntop(AF_INET6, raw.raw, text, sizeof text);
    gid.link_local = raw.raw[0] == 0xfe && (raw.raw[1] & 0xc0) == 0x80;
  }
  gid.address = text;
  return gid;
}

std::string family_name(const Gid& gid) {
  if (gid.type == GidType::kInfiniBand) return to_string(gid.type);
  return fmt::format("{}/{}{}", to_string(gid.type), gid.ipv4 ? "IPv4" : "IPv6",
                     gid.link_local ? " link-local" : "");
}

std::vector<Gid> addresses_of(const ibv_gid& hardware) {
  const auto* mac = hardware.raw;
  const std::string wanted =
      fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, ::freeifaddrs);
  std::vector<Gid> table;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    const int family = each->ifa_addr == nullptr ? AF_UNSPEC : each->ifa_addr->sa_family;
    if ((family != AF_INET && family != AF_INET6) || mac_of(each->ifa_name) != wanted) continue;
    ibv_gid raw{};
    if (family == AF_INET6) {
      sockaddr_in6 in6{};
      std::memcpy(&in6, each->ifa_addr, sizeof in6);
      std::memcpy(raw.raw, &in6.sin6_addr, sizeof raw.raw);
    } else {
      sockaddr_in in{};
      std::memcpy(&in, each->ifa_addr, sizeof in);
      raw.raw[10] = raw.raw[11] = 0xff;
      std::memcpy(raw.raw + 12, &in.sin_addr, 4);
    }
    table.push_back(make_gid(static_cast<int>(table.size()), GidType::kIwarp, raw, each->ifa_name));
  }
  return table;
}

std::vector<Gid> gid_table(const Context& context, int port) {
  std::size_t capacity = 0;
  int own_length = 0;
  for (int number = 1; number <= context.ports(); ++number) {
    ibv_port_attr attr{};
    if (::ibv_query_port(context.get(), static_cast<std::uint8_t>(number), &attr) != 0) continue;
    capacity += static_cast<std::size_t>(std::max(attr.gid_tbl_len, 0));
    if (number == port) own_length = attr.gid_tbl_len;
  }
  if (capacity == 0) return {};
  std::vector<ibv_gid_entry> entries(capacity);
  const ssize_t count = ::ibv_query_gid_table(context.get(), entries.data(), capacity, 0);
  if (count < 0) {
    return table_from_sysfs(fmt::format("{}/ports/{}", class_folder(context.name()), port),
                            own_length);
  }
  std::vector<Gid> table;
  for (const ibv_gid_entry& entry : std::span(entries).first(static_cast<std::size_t>(count))) {
    if (static_cast<int>(entry.port_num) == port && !is_zero(entry.gid))
      table.push_back(from_entry(entry));
  }
  std::sort(table.begin(), table.end(),
            [](const Gid& a, const Gid& b) { return a.index < b.index; });
  if (context.iwarp()) return table.empty() ? table : addresses_of(table.front().raw);
  return table;
}

std::vector<Gid> ranked(std::span<const Gid> table) {
  std::vector<Gid> order(table.begin(), table.end());
  std::sort(order.begin(), order.end(), [](const Gid& a, const Gid& b) {
    const int cost_a = cost(a);
    const int cost_b = cost(b);
    return cost_a != cost_b ? cost_a < cost_b : a.index < b.index;
  });
  return order;
}

std::vector<std::string> families(std::span<const Gid> table) {
  std::vector<std::string> names;
  for (const Gid& gid : ranked(table)) {
    std::string name = family_name(gid);
    if (names.empty() || names.back() != name) names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> offered_families(std::span<const Gid> table, int requested_index, GidFamily family,
                                          const std::string& flag) {
  if (requested_index < 0) {
    if (family == GidFamily::kAny) return families(table);
    std::vector<Gid> those;
    std::copy_if(table.begin(), table.end(), std::back_inserter(those),
                 [&](const Gid& gid) { return gid.ipv4 == (family == GidFamily::kIpv4); });
    if (!those.empty()) return families(those);
    const std::string asked = gdrperf::flag<&TestSpec::gid_family>();
    throw Error(
        ExitCode::kEnvironment,
        fmt::format("{}: the port has no GID of an {} address", asked, family == GidFamily::kIpv4 ? "IPv4" : "IPv6"),
        fmt::format("'gdrperf devices' lists them: leave {} out, or give the interface such an address", asked));
  }
  return {family_name(at_index(table, requested_index, flag))};
}

GidChoice choose_gid(std::span<const Gid> table, int requested_index,
                     std::span<const std::string> peer_families, const std::string& flag) {
  const auto peer_has = [&](const Gid& gid) {
    return peer_families.empty() || std::find(peer_families.begin(), peer_families.end(),
                                              family_name(gid)) != peer_families.end();
  };
  if (requested_index >= 0) {
    const Gid& gid = at_index(table, requested_index, flag);
    if (peer_has(gid)) return {gid, fmt::format("asked for with {} {}", flag, requested_index)};
    throw Error(
        ExitCode::kEnvironment,
        fmt::format("GID {} ({} {}) asked for with {} cannot reach the peer, which has {}",
                    gid.index, family_name(gid), gid.address, flag, fmt::join(peer_families, ", ")),
        fmt::format("leave {} out to have a GID chosen, or ask for one of those kinds", flag));
  }
  if (table.empty()) throw empty_table_error();
  const std::vector<Gid> order = ranked(table);
  const auto best = std::find_if(order.begin(), order.end(), peer_has);
  if (best == order.end()) {
    throw Error(
        ExitCode::kEnvironment,
        fmt::format("client and server have no kind of GID in common: this host has {}; the peer has {}",
                    fmt::join(families(table), ", "), fmt::join(peer_families, ", ")),
        "give both interfaces an address of one kind (an IPv4 one is best), or choose GIDs of "
        "one kind; gdrperf devices lists them");
  }
  // The first one in order would have been taken anyway; say so when the peer
  // decided otherwise.
  return {*best, fmt::format("first {}{}", describe(*best),
                             best == order.begin() ? "" : " among the kinds the peer has")};
}

}  // namespace gdrperf::verbs
