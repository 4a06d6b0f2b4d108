#pragma once

#include <infiniband/verbs.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/proto/settings.h"
#include "gdrperf/verbs/device.h"

namespace gdrperf::verbs {

enum class GidType { kInfiniBand, kRoceV1, kRoceV2, kIwarp };

/// "InfiniBand", "RoCE v1", "RoCE v2" or "iWARP".
const char* to_string(GidType type);

/// One valid entry of a port's GID table.
struct Gid {
  int index = 0;
  GidType type = GidType::kInfiniBand;
  ibv_gid raw{};
  std::string address;      ///< "10.0.0.1", "fe80::1"
  bool ipv4 = false;        ///< an IPv4-mapped address (::ffff:10.0.0.1)
  bool link_local = false;  ///< fe80::/10 or 169.254.0.0/16
  std::string netdev;       ///< interface the entry belongs to, "" when unknown
};

/// Fills address, ipv4 and link_local from the raw value.
Gid make_gid(int index, GidType type, const ibv_gid& raw, std::string netdev = {});

/// The kinds of address that can talk to each other, as both ends exchange
/// them: "RoCE v2/IPv4", "RoCE v2/IPv6", "RoCE v2/IPv6 link-local",
/// "RoCE v1/...", "iWARP/...", "InfiniBand".
std::string family_name(const Gid& gid);

/// All valid entries of the port's table, by index. Empty when there is none. An iWARP port has no GIDs that reach
/// anybody: its table is addresses_of() the hardware address that stands in place of one.
std::vector<Gid> gid_table(const Context& context, int port);

/// The IP addresses of the network interfaces whose hardware address is the first 6 bytes of `hardware`, as IPv4-mapped
/// or IPv6 GIDs of type kIwarp, numbered from 0 in the order of getifaddrs(3); empty when there is none.
std::vector<Gid> addresses_of(const ibv_gid& hardware);

/// The table in order of preference: RoCE v2 before v1; within each IPv4,
/// routable IPv6, link-local; InfiniBand last (it never shares a port with
/// RoCE). Within one family loopback addresses (127.x, ::1) and those of
/// container bridges come after others, then the lower index wins.
std::vector<Gid> ranked(std::span<const Gid> table);

/// Families of the table in order of preference, without repetition: what one
/// end tells the other.
std::vector<std::string> families(std::span<const Gid> table);

/// The families one end has to offer given what was asked for: that of the
/// requested index alone, else all of them (-1). Throws as choose_gid does for
/// an index that is not in the table, and where no GID is of the family that was asked for.
std::vector<std::string> offered_families(std::span<const Gid> table, int requested_index,
                                          GidFamily family = GidFamily::kAny,
                                          const std::string& flag = own_flag<&EndSpec::gid_index>());

struct GidChoice {
  Gid gid;
  std::string why;  ///< "first RoCE v2 over IPv4", "asked for with -x 3"
};

/// Chooses one GID of a port: the requested index, or by preference (-1) among
/// the families the peer has. As preference is one order for everyone, two
/// ends that know each other's families arrive at the same family.
///
/// `peer_families`: the peer's families(), empty for no restriction. `flag` is
/// the option named in messages about `requested_index`. Throws Error: kUsage
/// for an index not in the table, kEnvironment for an empty table and when the
/// ends have no family in common (both ends' families are named).
GidChoice choose_gid(std::span<const Gid> table, int requested_index,
                     std::span<const std::string> peer_families,
                     const std::string& flag = own_flag<&EndSpec::gid_index>());

}  // namespace gdrperf::verbs
