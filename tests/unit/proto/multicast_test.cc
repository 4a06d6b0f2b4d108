#include "gdrperf/proto/multicast.h"

#include <arpa/inet.h>

#include <string>

#include <gtest/gtest.h>

#include "told.h"

namespace gdrperf {
namespace {

TestSpec to_group(const std::string& group) {
  TestSpec spec;
  spec.test.operation = Operation::kSend;
  spec.size_bytes = 1024;
  spec.transport = Transport::kUd;
  spec.multicast = group;
  return spec;
}

std::string shown(const GroupAddress& address) {
  char text[INET6_ADDRSTRLEN];
  return ::inet_ntop(AF_INET6, address.data(), text, sizeof text);
}

TEST(Multicast, EachDirectionHasAGroup) {
  struct Row {
    const char* asked;
    bool ipv4;
    const char* to_server;
    const char* to_client;
  };
  const Row rows[] = {
      {"auto", true, "::ffff:239.103.100.114", "::ffff:239.103.100.115"},
      {"auto", false, "ff0e::6764:7270", "ff0e::6764:7271"},
      {"224.0.0.0", true, "::ffff:224.0.0.0", "::ffff:224.0.0.1"},
      {"239.255.255.255", false, "::ffff:239.255.255.255", "::ffff:239.255.255.254"},
      {"::ffff:230.1.2.3", true, "::ffff:230.1.2.3", "::ffff:230.1.2.2"},
      {"ff02::5", true, "ff02::5", "ff02::4"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(shown(group_to_server(to_group(row.asked), row.ipv4)), row.to_server) << row.asked;
    EXPECT_EQ(shown(group_to_client(to_group(row.asked), row.ipv4)), row.to_client) << row.asked;
  }
}

TEST(Multicast, OtherAddressesAreNoGroups) {
  std::vector<std::string> others = {"223.255.255.255", "240.0.0.0", "10.224.0.1", "fe02::5", "224.0.0", "ff02::5::1",
                                     "x", "mlx5_0:1"};
  // The prefix of an IPv4 address with a bit of each group of digits changed.
  for (const char* prefix :
       {"1::ffff:", "0:1::ffff:", "0:0:1::ffff:", "0:0:0:1:0:ffff:", "0:0:0:0:1:ffff:", "::fffe:", "::7fff:",
        "0100::ffff:", "0:0100::ffff:", "0:0:0100::ffff:", "0:0:0:0100:0:ffff:", "0:0:0:0:0100:ffff:"})
    others.push_back(prefix + std::string("230.1.2.3"));
  for (const std::string& text : others) {
    EXPECT_EQ(told_by([&] { group_to_server(to_group(text), true); }),
              "--multicast-group '" + text +
                  "': is no multicast group | give 224.0.0.0 to 239.255.255.255, or an address "
                  "that begins with ff, or leave the group out");
  }
}

struct Beside {
  const char* told;
  void (*put)(TestSpec&);
};

TEST(Multicast, GoesWithOneQpOfOneClientOverUd) {
  const Beside rows[] = {
      {"taken", [](TestSpec&) {}},
      {"taken", [](TestSpec& s) { s.transport = Transport::kRc, s.multicast = ""; }},
      {"--multicast-group: datagrams alone go to a group | give --transport ud",
       [](TestSpec& s) { s.transport = Transport::kRc; }},
      {"--multicast-group 'x': is no multicast group | give 224.0.0.0 to 239.255.255.255, or an address that begins "
       "with "
       "ff, or leave the group out",
       [](TestSpec& s) { s.multicast = "x"; }},
      {"--multicast-group and -q: each QP of a group would receive the messages of all | leave one of them out",
       [](TestSpec& s) { s.qps = 2; }},
      {"--multicast-group and --spread: each QP of a group would receive the messages of all | leave one of them out",
       [](TestSpec& s) { s.spread = 2; }},
      {"--multicast-group and -q: each QP of a group would receive the messages of all | leave one of them out",
       [](TestSpec& s) { s.qps = s.spread = 2; }},
      {"--multicast-group and --threads: each thread would receive the messages of all | leave one of them out",
       [](TestSpec& s) { s.threads = 2; }},
      {"--multicast-group and --rails: each device would receive the messages of all | leave one of them out",
       [](TestSpec& s) { s.rails = "a,b"; }},
      {"--multicast-group and --incast: each client's messages would be received by all | leave one of them out",
       [](TestSpec& s) { s.incast = 2; }},
      {"--multicast-group and --load: the stream goes over RC | leave one of them out",
       [](TestSpec& s) { s.load = "50%"; }},
  };
  for (const Beside& row : rows) {
    TestSpec spec = to_group("auto");
    row.put(spec);
    EXPECT_EQ(told_by([&] { check_multicast(spec); }), row.told);
  }
  EXPECT_EQ(told_by([] { validate(to_group("224.1.2.3")); }), "taken");
}

}  // namespace
}  // namespace gdrperf
