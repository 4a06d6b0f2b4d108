// A device's facts about itself: limits, addresses, and where it is.

#include <infiniband/ib.h>
#include <net/if.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>

#include "fixture.h"

namespace softnic_test {
namespace {

TEST(SoftnicVerbs, AddressHandlesAndHardwareAddresses) {
  End end;
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = 1;
  attr.grh.sgid_index = kGidIndex;
  attr.grh.dgid = end.address().gid;
  ibv_ah* ah = ibv_create_ah(end.pd.get(), &attr);
  ASSERT_NE(ah, nullptr);
  EXPECT_EQ(ibv_destroy_ah(ah), 0);
  std::uint8_t mac[ETHERNET_LL_SIZE] = {};
  std::uint16_t vlan = 0;
  ASSERT_EQ(ibv_resolve_eth_l2_from_gid(end.context.get(), &attr, mac, &vlan), 0);
  const std::uint8_t first[] = {0x02, 0x53, 0x4e, 0, 0, 0};
  EXPECT_EQ(std::memcmp(mac, first, sizeof first), 0);
  EXPECT_EQ(vlan, 0xffff);
  ASSERT_EQ(ibv_query_gid(end.context.get(), 1, 0, &attr.grh.dgid), 0);
  attr.grh.dgid.raw[15] = 7;  // a neighbour's link-local address
  ASSERT_EQ(ibv_resolve_eth_l2_from_gid(end.context.get(), &attr, mac, nullptr), 0);
  EXPECT_EQ(mac[5], 7);
  attr.grh.dgid.raw[0] = 0x20;
  EXPECT_EQ(ibv_resolve_eth_l2_from_gid(end.context.get(), &attr, mac, nullptr), ENOENT);
  attr.is_global = 0;
  EXPECT_EQ(ibv_create_ah(end.pd.get(), &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

// Connecting reads what a device's first context has published: a later one, opened meanwhile, leaves it alone. Whoever
// writes to it all the same is seen by ThreadSanitizer.
TEST(SoftnicVerbs, ContextsAreOpenedWhileOthersConnect) {
  const EndOptions modelled{.device = "link0"};
  std::atomic<bool> stop{false};
  std::thread opener([&] {
    while (!stop.load()) EXPECT_NE(open_device(modelled.device), nullptr);
  });
  Pair pair(modelled, modelled);
  const Address peer = pair.server.address();
  for (int i = 0; i < 1000 && !HasFailure(); ++i) {
    EXPECT_EQ(pair.client.to(IBV_QPS_RESET), 0);
    EXPECT_EQ(pair.client.to_init(), 0);
    EXPECT_EQ(pair.client.connect(peer), 0);
    EXPECT_EQ(pair.client.post(IBV_WR_RDMA_WRITE, peer, 0, 8), 0);
    EXPECT_EQ(status_of(pair.client.send_cq.get()), IBV_WC_SUCCESS);
  }
  stop = true;
  opener.join();
}

TEST(SoftnicVerbs, LimitsAreThoseThatHold) {
  End end;
  ibv_device_attr attr{};
  ASSERT_EQ(ibv_query_device(end.context.get(), &attr), 0);
  ibv_qp_init_attr init{};
  init.send_cq = end.send_cq.get();
  init.recv_cq = end.recv_cq.get();
  init.qp_type = IBV_QPT_RC;
  const auto depth = static_cast<std::uint32_t>(attr.max_qp_wr);
  const auto sges = static_cast<std::uint32_t>(attr.max_sge);
  init.cap = {depth, depth, sges, sges, 0};
  Owned<ibv_qp> largest(ibv_create_qp(end.pd.get(), &init));
  EXPECT_NE(largest, nullptr);
  for (const int which : {0, 1, 2, 3}) {
    init.cap = {1, 1, 1, 1, 0};
    if (which == 0) init.cap.max_send_wr = depth + 1;
    if (which == 1) init.cap.max_recv_wr = depth + 1;
    if (which == 2) init.cap.max_send_sge = sges + 1;
    if (which == 3) init.cap.max_recv_sge = sges + 1;
    EXPECT_EQ(ibv_create_qp(end.pd.get(), &init), nullptr) << which;
    EXPECT_EQ(errno, EINVAL);
  }
  Owned<ibv_cq> cq(ibv_create_cq(end.context.get(), attr.max_cqe, nullptr, nullptr, 0));
  EXPECT_NE(cq, nullptr);
  EXPECT_EQ(ibv_create_cq(end.context.get(), attr.max_cqe + 1, nullptr, nullptr, 0), nullptr);
  ibv_srq_init_attr srq_attr{};
  srq_attr.attr = {static_cast<std::uint32_t>(attr.max_srq_wr), static_cast<std::uint32_t>(attr.max_srq_sge), 0};
  Owned<ibv_srq> srq(ibv_create_srq(end.pd.get(), &srq_attr));
  EXPECT_NE(srq, nullptr);
  ++srq_attr.attr.max_wr;
  EXPECT_EQ(ibv_create_srq(end.pd.get(), &srq_attr), nullptr);
  // Missing capabilities are not claimed either.
  constexpr unsigned kNotThere = IBV_DEVICE_UD_AV_PORT_ENFORCE | IBV_DEVICE_SRQ_RESIZE |
                                 IBV_DEVICE_AUTO_PATH_MIG | IBV_DEVICE_MANAGED_FLOW_STEERING |
                                 IBV_DEVICE_MEM_WINDOW_TYPE_2A;
  EXPECT_EQ(attr.device_cap_flags & kNotThere, 0u);
  EXPECT_NE(attr.device_cap_flags & IBV_DEVICE_XRC, 0u);
  EXPECT_EQ(attr.max_mcast_grp, 4096);
  EXPECT_EQ(attr.max_raw_ethy_qp, 0);
  ibv_device_attr_ex full{};
  ASSERT_EQ(ibv_query_device_ex(end.context.get(), nullptr, &full), 0);
  EXPECT_EQ(full.tm_caps.max_num_tags, 0u);
  EXPECT_EQ(full.raw_packet_caps, 0u);
  EXPECT_EQ(full.rss_caps.supported_qpts, 0u);
  EXPECT_EQ(full.cq_mod_caps.max_cq_count, 0);
}

// --- placed0: netdev=lo,mac=0a:1b:2c:3d:4e:5f,pci=0000:3B:00.0,numa=1

std::string class_file(const std::string& path) {
  std::ifstream file("/sys/class/infiniband/" + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Of a device in the list; what its IPv4 address is made of.
int index_of(const std::string& name) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  int found = -1;
  int own = 0;
  for (int i = 0; i < count; ++i) {
    // Devices of the real libibverbs are in the list as well.
    if (class_file(std::string(ibv_get_device_name(list[i])) + "/hca_type") != "softnic\n") continue;
    if (name == ibv_get_device_name(list[i])) found = own;
    ++own;
  }
  ibv_free_device_list(list);
  return found;
}

TEST(SoftnicPlaced, ItsAddressesFollowFromTheHardwareAddress) {
  Owned<ibv_context> context = open_device("placed0");
  ASSERT_NE(context, nullptr);
  const std::uint8_t guid[] = {0x08, 0x1b, 0x2c, 0xff, 0xfe, 0x3d, 0x4e, 0x5f};
  const __be64 claimed = ibv_get_device_guid(context->device);
  EXPECT_EQ(std::memcmp(&claimed, guid, sizeof guid), 0);
  ibv_device_attr attr{};
  ASSERT_EQ(ibv_query_device(context.get(), &attr), 0);
  EXPECT_EQ(std::memcmp(&attr.node_guid, guid, sizeof guid), 0);
  EXPECT_EQ(attr.sys_image_guid, attr.node_guid);

  std::uint8_t link_local[16] = {0xfe, 0x80};
  std::memcpy(link_local + 8, guid, sizeof guid);
  ibv_gid gid{};
  for (const int index : {0, 1}) {
    ASSERT_EQ(ibv_query_gid(context.get(), 1, index, &gid), 0);
    EXPECT_EQ(std::memcmp(gid.raw, link_local, sizeof link_local), 0) << index;
  }
  ASSERT_EQ(ibv_query_gid(context.get(), 1, kGidIndex, &gid), 0);
  EXPECT_EQ(std::memcmp(gid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0", 14), 0) << "::ffff:127.0.x.y";
  EXPECT_EQ(gid.raw[15], index_of("placed0") + 1);
  EXPECT_NE(ibv_query_gid(context.get(), 1, 3, &gid), 0);

  ibv_gid_entry entries[8];
  ASSERT_EQ(ibv_query_gid_table(context.get(), entries, 8, 0), 3);
  const int types[] = {IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2, IBV_GID_TYPE_ROCE_V2};
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(entries[i].gid_index, i);
    EXPECT_EQ(entries[i].port_num, 1u);
    EXPECT_EQ(static_cast<int>(entries[i].gid_type), types[i]) << i;
    EXPECT_EQ(entries[i].ndev_ifindex, ::if_nametoindex("lo")) << i;
  }
  ibv_ah_attr path{};
  path.is_global = 1;
  path.port_num = 1;
  path.grh.dgid = entries[kGidIndex].gid;
  std::uint8_t mac[ETHERNET_LL_SIZE] = {};
  ASSERT_EQ(ibv_resolve_eth_l2_from_gid(context.get(), &path, mac, nullptr), 0);
  const std::uint8_t given[] = {0x0a, 0x1b, 0x2c, 0x3d, 0x4e, 0x5f};
  EXPECT_EQ(std::memcmp(mac, given, sizeof given), 0);
}

TEST(SoftnicPlaced, ItsClassFilesSayWhereItIs) {
  EXPECT_EQ(class_file("placed0/device/uevent"), "DRIVER=softnic\nPCI_SLOT_NAME=0000:3b:00.0\n");
  EXPECT_EQ(class_file("placed0/device/numa_node"), "1\n");
  for (const char* index : {"0", "1", "2"}) {
    EXPECT_EQ(class_file(std::string("placed0/ports/1/gid_attrs/ndevs/") + index), "lo\n") << index;
  }
  EXPECT_EQ(class_file("placed0/ports/1/gid_attrs/ndevs/3"), "");
  EXPECT_EQ(class_file("placed0/ports/1/state"), "4: ACTIVE\n");
  EXPECT_EQ(class_file("placed0/ports/1/link_layer"), "Ethernet\n");
  // A device that was given no place has none.
  EXPECT_EQ(class_file("soft0/device/uevent"), "DRIVER=softnic\n");
  EXPECT_EQ(class_file("soft0/device/numa_node"), "-1\n");
  EXPECT_EQ(class_file("far0/ports/1/gid_attrs/ndevs/0"), "lo\n");
  EXPECT_EQ(class_file("elsewhere0/ports/1/gid_attrs/ndevs/0"), "eth9\n");
}

TEST(SoftnicPlaced, WrongPlacesAreNamed) {
  for (const char* text :
       {"mac=02:00:00:00:00", "mac=02:00:00:00:00:01:02", "mac=soft", "pci=3b:00.0", "pci=0000:3b:00.0x", "numa=-1",
        "numa=one", "numa=", "netdev=", "netdev=a/b", "kernel=perhaps"}) {
    const Output output = run_again(std::string("soft0:") + text, "--list-devices");
    EXPECT_EQ(output.out.find("soft"), std::string::npos) << text;
    EXPECT_EQ(output.err.rfind("softnic: SOFTNIC '", 0), 0u) << text << ": " << output.err;
    EXPECT_NE(output.err.find(text), std::string::npos) << output.err;
  }
}

}  // namespace
}  // namespace softnic_test
