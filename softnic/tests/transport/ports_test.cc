#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "datagrams.h"

/// Devices with two ports (ports=2).
namespace softnic_test {
namespace {

EndOptions at(const char* device, std::uint8_t port, ibv_qp_type type = IBV_QPT_RC) {
  EndOptions options = on(device);
  options.type = type;
  options.port = port;
  return options;
}

ibv_gid gid_of(ibv_context* context, std::uint8_t port, int index) {
  ibv_gid gid{};
  EXPECT_EQ(ibv_query_gid(context, port, index, &gid), 0) << int{port};
  return gid;
}

ibv_port_attr port_of(ibv_context* context, std::uint8_t port) {
  ibv_port_attr attr{};
  EXPECT_EQ(ibv_query_port(context, port, &attr), 0) << int{port};
  return attr;
}

/// A write from one end to the other, which have not met yet.
ibv_wc_status write_between(End& client, End& server) {
  EXPECT_EQ(client.connect(server.address()), 0);
  EXPECT_EQ(server.connect(client.address()), 0);
  client.memory->fill(3);
  EXPECT_EQ(client.post(IBV_WR_RDMA_WRITE, server.address(), 0, 1000), 0);
  const ibv_wc_status status = status_of(client.send_cq.get());
  EXPECT_EQ(server.memory->holds(3, 0, 1000), status == IBV_WC_SUCCESS);
  return status;
}

TEST(SoftnicPorts, EachSaysWhatItIs) {
  const auto two = open_device("two0");
  const auto one = open_device("soft0");
  ibv_device_attr attr{};
  ASSERT_EQ(ibv_query_device(two.get(), &attr), 0);
  EXPECT_EQ(attr.phys_port_cnt, 2);
  ASSERT_EQ(ibv_query_device(one.get(), &attr), 0);
  EXPECT_EQ(attr.phys_port_cnt, 1);
  ibv_port_attr port{};
  EXPECT_EQ(ibv_query_port(one.get(), 2, &port), EINVAL);
  EXPECT_EQ(ibv_query_port(two.get(), 0, &port), EINVAL);
  EXPECT_EQ(ibv_query_port(two.get(), 3, &port), EINVAL);
  EXPECT_EQ(port_of(two.get(), 2).state, IBV_PORT_ACTIVE);
  const auto half = open_device("half0");
  EXPECT_EQ(port_of(half.get(), 1).state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port_of(half.get(), 2).state, IBV_PORT_DOWN);
  const auto infiniband = open_device("twin0");
  EXPECT_NE(port_of(infiniband.get(), 1).lid, port_of(infiniband.get(), 2).lid);
}

TEST(SoftnicPorts, EachHasGidsOfItsOwn) {
  const auto two = open_device("two0");
  ibv_gid_entry table[8];
  ASSERT_EQ(ibv_query_gid_table(two.get(), table, 8, 0), 6);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(table[i].port_num, i < 3 ? 1u : 2u);
    for (int j = 0; j < i; ++j) {
      const bool same = std::memcmp(&table[i].gid, &table[j].gid, sizeof table[i].gid) == 0;
      EXPECT_EQ(same, i / 3 == j / 3 && i % 3 < 2 && j % 3 < 2) << i << j;  // RoCE v1's and v2's are written alike
    }
  }
  ibv_gid_entry entry{};
  ASSERT_EQ(ibv_query_gid_ex(two.get(), 2, 2, &entry, 0), 0);
  EXPECT_EQ(entry.port_num, 2u);
  const ibv_gid asked = gid_of(two.get(), 2, 2);
  EXPECT_EQ(std::memcmp(&entry.gid, &asked, sizeof asked), 0);
  __be16 pkey = 0;
  EXPECT_EQ(ibv_query_pkey(two.get(), 2, 0, &pkey), 0);
  EXPECT_NE(ibv_query_pkey(two.get(), 3, 0, &pkey), 0);
}

TEST(SoftnicPorts, QpsMeetOnEitherPort) {
  for (const std::uint8_t from : {1, 2}) {
    for (const std::uint8_t to : {1, 2}) {
      End client(at("two0", from));
      End server(at("two0", to));
      EXPECT_EQ(write_between(client, server), IBV_WC_SUCCESS) << int{from} << int{to};
      ibv_qp_attr attr{};
      ibv_qp_init_attr init{};
      ASSERT_EQ(ibv_query_qp(client.qp.get(), &attr, IBV_QP_PORT | IBV_QP_AV, &init), 0);
      EXPECT_EQ(attr.port_num, from);
      EXPECT_EQ(attr.ah_attr.port_num, from);
    }
  }
}

TEST(SoftnicPorts, OneOfAnotherProcess) {
  SecondProcess other([](int socket) {
    End server(at("two0", 2));
    meet_parent(server, socket);
    hear<char>(socket);
  });
  End client(at("two0", 1));
  const Address there = meet(client, other);
  EXPECT_EQ(client.post(IBV_WR_RDMA_WRITE, there, 0, 64), 0);
  EXPECT_EQ(status_of(client.send_cq.get()), IBV_WC_SUCCESS);
  tell(other.socket(), 'x');
  EXPECT_EQ(other.wait(), 0);
}

TEST(SoftnicPorts, TheOtherPortsGidIsNotThePeers) {
  End client(at("two0", 1));
  End server(at("two0", 2));
  Address wrong = server.address();
  wrong.gid = gid_of(client.context.get(), 1, kGidIndex);
  ASSERT_EQ(client.connect(wrong), 0);
  ASSERT_EQ(server.connect(client.address()), 0);
  ASSERT_EQ(client.post(IBV_WR_RDMA_WRITE, server.address(), 0, 8), 0);
  EXPECT_EQ(status_of(client.send_cq.get()), IBV_WC_RETRY_EXC_ERR);
}

TEST(SoftnicPorts, APathByAnotherPortIsRefused) {
  End end(at("two0", 2));
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.dgid = end.address().gid;
  attr.ah_attr.grh.sgid_index = kGidIndex;
  const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  for (const std::uint8_t port : {0, 1, 3}) {
    attr.ah_attr.port_num = port;
    EXPECT_EQ(ibv_modify_qp(end.qp.get(), &attr, mask), EINVAL) << int{port};
    const Owned<ibv_ah> ah(ibv_create_ah(end.pd.get(), &attr.ah_attr));
    EXPECT_EQ(ah != nullptr, port == 1);
  }
  attr.ah_attr.port_num = 2;
  EXPECT_EQ(ibv_modify_qp(end.qp.get(), &attr, mask), 0);
  attr.port_num = 3;
  ASSERT_EQ(end.to(IBV_QPS_RESET), 0);
  attr.qp_state = IBV_QPS_INIT;
  EXPECT_EQ(ibv_modify_qp(end.qp.get(), &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
            EINVAL);
}

TEST(SoftnicPorts, NothingGetsThroughTheOneThatIsDown) {
  for (const std::uint8_t port : {1, 2}) {
    End client(at("half0", port));
    End server(at("two0", 1));
    EXPECT_EQ(write_between(client, server), port == 1 ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR);
  }
}

TEST(SoftnicPorts, DatagramsComeFromTheirPort) {
  Sender client(at("two0", 2, IBV_QPT_UD));
  Sender server(at("two0", 1, IBV_QPT_UD));
  ASSERT_EQ(server.post_recv(0, 4096), 0);
  client.memory->fill(9);
  EXPECT_EQ(client.send(server.address(), 0, 100), IBV_WC_SUCCESS);
  const auto received = next_completion(server.recv_cq.get());
  ASSERT_TRUE(received);
  EXPECT_EQ(std::memcmp(server.memory->data() + kGrh, client.memory->data(), 100), 0);
  ibv_wc completion = *received;
  auto* header = reinterpret_cast<ibv_grh*>(server.memory->data());
  ibv_ah_attr back{};
  EXPECT_NE(ibv_init_ah_from_wc(server.context.get(), 2, &completion, header, &back), 0);
  ASSERT_EQ(ibv_init_ah_from_wc(server.context.get(), 1, &completion, header, &back), 0);
  const ibv_gid sender = gid_of(client.context.get(), 2, kGidIndex);
  EXPECT_EQ(std::memcmp(&back.grh.dgid, &sender, sizeof sender), 0);
}

TEST(SoftnicPorts, EachHasItsLinkAndCounters) {
  const std::uint64_t before[] = {counter("wide0", "messages"), counter("wide0", "messages", 2)};
  End client(at("wide0", 2));
  End server(at("wide0", 2));
  EXPECT_EQ(write_between(client, server), IBV_WC_SUCCESS);
  client.qp.reset();
  EXPECT_EQ(counter("wide0", "messages"), before[0]);
  EXPECT_EQ(counter("wide0", "messages", 2), before[1] + 1);
}

}  // namespace
}  // namespace softnic_test
