// RoCE and IP: which GID programs take, whose network namespace it is in, and
// several interfaces in one subnet.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "doctor/checks/checks.h"
#include "doctor/cures.h"
#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

const verbs::Gid* gid_at(const Port& port, int index) {
  for (const verbs::Gid& gid : *port.gids) {
    if (gid.index == index) return &gid;
  }
  return nullptr;
}

/// The entry that programs should use: RoCE v2, routable, IPv4 before IPv6.
const verbs::Gid* usable(const Port& port) {
  const verbs::Gid* best = nullptr;
  for (const verbs::Gid& gid : *port.gids) {
    if (gid.type != verbs::GidType::kRoceV2 || gid.link_local) continue;
    if (best == nullptr || (gid.ipv4 && !best->ipv4)) best = &gid;
  }
  return best;
}

std::string variables(int index) {
  return fmt::format("NCCL_IB_GID_INDEX={0} UCX_IB_GID_INDEX={0}; perftest: -x {0}", index);
}

std::string what_is(const Port& port, int index) {
  const verbs::Gid* gid = gid_at(port, index);
  if (gid == nullptr) return "empty";
  return fmt::format("{}{}", verbs::to_string(gid->type), gid->link_local ? ", link-local" : "");
}

void judge_index(const Survey& survey, const Port& port, const Check& check) {
  const verbs::Gid* best = usable(port);
  if (best == nullptr) return;
  const auto set = survey.platform.environment.find("NCCL_IB_GID_INDEX");
  if (set != survey.platform.environment.end() && leading_int(set->second) >= 0) {
    const int index = leading_int(set->second);
    const verbs::Gid* gid = gid_at(port, index);
    if (gid == nullptr || gid->type != verbs::GidType::kRoceV2 || gid->link_local) {
      check
          .warn(port.subject(),
                fmt::format("NCCL_IB_GID_INDEX={} is {} here: completion error 12", index, what_is(port, index)),
                "export " + variables(best->index))
          .saw("environment", "NCCL_IB_GID_INDEX=" + set->second);
      return;
    }
  }
  // Of mlx5 the first four are one address in both types, link-local.
  const bool holes = port.gids->front().index > 3;
  if (holes) {
    check.warn(port.subject(),
               fmt::format("the table begins with empty entries, the first in use is {}: programs that read "
                           "index 0 to 3 fail; pods own different ones",
                           port.gids->front().index),
               "export " + variables(best->index) + "  # in this pod; NCCL 2.26 and later finds it itself");
    return;
  }
  const char* family =
      best->ipv4 ? "" : " (IPv6: NCCL also wants NCCL_IB_ADDR_FAMILY=AF_INET6 NCCL_SOCKET_FAMILY=AF_INET6)";
  check.ok(port.subject(), fmt::format("{}{}; index 0 is {}", variables(best->index), family, what_is(port, 0)));
}

/// Directly connected IPv4 networks: "0001A8C0/00FFFFFF" -> interfaces.
std::map<std::string, std::vector<std::string>> connected_networks(const Survey& survey) {
  std::map<std::string, std::vector<std::string>> networks;
  const std::string routes = survey.machine.read("/proc/net/route").text;
  for (const std::string_view line : lines_of(routes)) {
    // Iface Destination Gateway Flags RefCnt Use Metric Mask
    const auto words = words_of(line);
    if (words.size() < 8 || words[2] != "00000000" || words[1] == "00000000") continue;
    const bool rdma = std::any_of(survey.ports.begin(), survey.ports.end(), [&](const Port& port) {
      return port.netdev == words[0] && port.link_layer == "Ethernet";
    });
    auto& interfaces = networks[fmt::format("{}/{}", words[1], words[7])];
    const std::string name(words[0]);
    if (rdma && std::find(interfaces.begin(), interfaces.end(), name) == interfaces.end()) {
      interfaces.push_back(name);
    }
  }
  return networks;
}

/// The larger of the setting for all interfaces and for this one, as the kernel
/// takes it.
int ipv4_setting(const Machine& machine, const std::string& netdev, const char* name) {
  const auto value = [&](const std::string& which) {
    return leading_int(line_of(machine, fmt::format("/proc/sys/net/ipv4/conf/{}/{}", which, name)));
  };
  return std::max(value("all"), value(netdev));
}

}  // namespace

void check_gid_index(const Survey& survey, Findings& findings) {
  const Check check(findings, "gid-index",
                    "programs that do not look for the right GID take index 0, mostly link-local or RoCE v1, "
                    "and end in completion error 12");
  for (const Port& port : survey.ports) {
    if (port.link_layer == "Ethernet" && port.gids && !port.gids->empty()) {
      judge_index(survey, port, check);
    }
  }
  if (of_this_check(findings, "gid-index") == 0) check.skip("", "no RoCE port with GIDs");
}

void check_netns(const Survey& survey, Findings& findings) {
  const Check check(findings, "netns",
                    "a GID can only be used in the network namespace its interface lives in");
  const auto interfaces = survey.machine.list("/sys/class/net");
  const std::string mode = first_line(survey.machine.run({"rdma", "system"}).output);
  for (const Port& port : survey.ports) {
    if (port.link_layer != "Ethernet") continue;
    std::vector<std::string> foreign;
    for (const verbs::Gid& gid : port.gids.value_or(std::vector<verbs::Gid>())) {
      const bool here = gid.netdev.empty() || std::find(interfaces.begin(), interfaces.end(), gid.netdev) !=
                                                  interfaces.end();
      if (!here) foreign.push_back(gid.netdev);
    }
    const bool none = port.active() && port.gids && port.gids->empty() && survey.container;
    const bool lost = port.active() && survey.container && port.netdev.empty() && !port.gids;
    if (foreign.empty() && !none && !lost) continue;
    check.fail(port.subject(),
               fmt::format("{}; ibv_modify_qp ends in 'No such device'",
                           foreign.empty() ? "this network namespace has no GID of an ACTIVE port: its "
                                             "interface is in another one (the host's)"
                                           : fmt::format("its GIDs belong to {}, which is not in this network "
                                                         "namespace",
                                                         foreign.front())),
               container_network(survey.platform))
        .saw("rdma system", mode);
  }
  if (of_this_check(findings, "netns") > 0) return;
  if (survey.ports.empty()) {
    check.skip("", "no port");
  } else {
    check.ok("", mode.empty() ? "all GIDs belong to interfaces of this namespace" : mode);
  }
}

void check_subnets(const Survey& survey, Findings& findings) {
  const Check check(findings, "subnet",
                    "with several interfaces in one subnet, Linux answers for one from the other: packets arrive "
                    "at the wrong port and are dropped");
  bool any = false;
  for (const auto& [network, interfaces] : connected_networks(survey)) {
    if (interfaces.size() < 2) continue;
    any = true;
    std::vector<std::string> wrong;
    for (const std::string& netdev : interfaces) {
      if (ipv4_setting(survey.machine, netdev, "arp_ignore") < 1) wrong.push_back("arp_ignore=0");
      if (ipv4_setting(survey.machine, netdev, "arp_announce") < 2) wrong.push_back("arp_announce<2");
      if (ipv4_setting(survey.machine, netdev, "rp_filter") == 1) wrong.push_back("rp_filter=1");
    }
    std::sort(wrong.begin(), wrong.end());
    wrong.erase(std::unique(wrong.begin(), wrong.end()), wrong.end());
    const std::string found = fmt::format("{} are in one subnet", fmt::join(interfaces, ", "));
    if (wrong.empty()) {
      check.ok(interfaces.front(), found + ", with arp_ignore, arp_announce and rp_filter set for it");
    } else {
      check.warn(interfaces.front(), fmt::format("{}, with {}", found, fmt::join(wrong, ", ")),
                 "sudo sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 "
                 "net.ipv4.conf.all.rp_filter=2  # or a subnet for each interface")
          .for_good("the same three lines in /etc/sysctl.d/90-rdma.conf")
          .undo(
              "sudo sysctl -w net.ipv4.conf.all.arp_ignore=0 net.ipv4.conf.all.arp_announce=0 "
              "net.ipv4.conf.all.rp_filter=1");
    }
  }
  if (!any) check.skip("", "no two RoCE interfaces in one subnet");
}

}  // namespace gdrperf::doctor
