#include "gdrperf/proto/multicast.h"

#include <arpa/inet.h>

#include <algorithm>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/settings.h"

namespace gdrperf {
namespace {

constexpr const char* kGroupForIpv4 = "239.103.100.114";
constexpr const char* kGroupForIpv6 = "ff0e::6764:7270";
constexpr std::uint8_t kIpv6Multicast = 0xff;

bool names_group(const GroupAddress& address) {
  constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const bool mapped = std::equal(kMapped.begin(), kMapped.end(), address.begin());
  return address.front() == kIpv6Multicast || (mapped && address[kMapped.size()] >> 4 == 0xe);
}

GroupAddress group_named(const std::string& text) {
  GroupAddress address{};
  const bool ipv4 = text.find(':') == std::string::npos;
  const std::string whole = ipv4 ? "::ffff:" + text : text;
  if (::inet_pton(AF_INET6, whole.c_str(), address.data()) == 1 && names_group(address)) return address;
  throw usage_error(fmt::format("{} '{:.50}': is no multicast group", flag<&TestSpec::multicast>(), text),
                    "give 224.0.0.0 to 239.255.255.255, or an address that begins with ff, or leave the group out");
}

}  // namespace

GroupAddress group_to_server(const TestSpec& spec, bool ipv4) {
  return group_named(spec.multicast != kAnyGroup ? spec.multicast : ipv4 ? kGroupForIpv4 : kGroupForIpv6);
}

GroupAddress group_to_client(const TestSpec& spec, bool ipv4) {
  GroupAddress address = group_to_server(spec, ipv4);
  address.back() = static_cast<std::uint8_t>(address.back() ^ 1);
  return address;
}

void check_multicast(const TestSpec& spec) {
  if (spec.multicast.empty()) return;
  const std::string asked = flag<&TestSpec::multicast>();
  if (spec.transport != Transport::kUd) {
    throw usage_error(fmt::format("{}: datagrams alone go to a group", asked),
                      fmt::format("give {} ud", flag<&TestSpec::transport>()));
  }
  group_to_server(spec, true);
  const auto refuse = [&asked](bool typed, const std::string& option, const char* why) {
    if (typed) throw usage_error(fmt::format("{} and {}: {}", asked, option, why), "leave one of them out");
  };
  refuse(spec.qps > 1 || spec.spread != 0, spec.qps > 1 ? flag<&TestSpec::qps>() : flag<&TestSpec::spread>(),
         "each QP of a group would receive the messages of all");
  refuse(spec.threads > 1, flag<&TestSpec::threads>(), "each thread would receive the messages of all");
  refuse(!spec.rails.empty(), flag<&TestSpec::rails>(), "each device would receive the messages of all");
  refuse(spec.incast > 1, flag<&TestSpec::incast>(), "each client's messages would be received by all");
  refuse(!spec.load.empty(), flag<&TestSpec::load>(), "the stream goes over RC");
}

}  // namespace gdrperf
