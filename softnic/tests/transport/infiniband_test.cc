#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "datagrams.h"

/// Devices whose link layer is InfiniBand: paths by LID.
namespace softnic_test {
namespace {

ibv_port_attr port_of(ibv_context* context) {
  ibv_port_attr attr{};
  EXPECT_EQ(ibv_query_port(context, 1, &attr), 0);
  return attr;
}

std::string sysfs_line(const std::string& file) {
  std::ifstream in("/sys/class/infiniband/" + file);
  std::string text;
  std::getline(in, text);
  return text;
}

/// An end in INIT, with the LID of its port.
struct LidEnd : End {
  explicit LidEnd(const char* device, ibv_qp_type type = IBV_QPT_RC)
      : End(options_for(device, type)), lid(port_of(context.get()).lid) {}
  static EndOptions options_for(const char* device, ibv_qp_type type) {
    EndOptions options = on(device);
    options.type = type;
    options.gid_index = 0;
    return options;
  }
  static ibv_ah_attr path_to(std::uint16_t lid) {
    ibv_ah_attr path{};
    path.dlid = lid;
    path.port_num = 1;
    return path;
  }
  /// INIT -> RTR -> RTS.
  int meet(const LidEnd& peer) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    attr.ah_attr = path_to(peer.lid);
    attr.path_mtu = IBV_MTU_4096;
    attr.dest_qp_num = peer.qp->qp_num;
    attr.max_dest_rd_atomic = 4;
    attr.min_rnr_timer = 1;
    const int error = ibv_modify_qp(qp.get(), &attr,
                                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    return error != 0 ? error : to_ready_to_send();
  }
  const std::uint16_t lid;
};

TEST(SoftnicInfiniBand, ThePortSaysWhatItIs) {
  const auto ib0 = open_device("ib0");
  const auto ib1 = open_device("ib1");
  const ibv_port_attr port = port_of(ib0.get());
  EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_INFINIBAND);
  EXPECT_EQ(port.gid_tbl_len, 1);
  EXPECT_NE(port.lid, 0);
  EXPECT_NE(port.sm_lid, 0);
  EXPECT_EQ(port_of(ib1.get()).lid, port.lid + 1);
  ibv_gid_entry entry{};
  ASSERT_EQ(ibv_query_gid_ex(ib0.get(), 1, 0, &entry, 0), 0);
  EXPECT_EQ(entry.gid_type, static_cast<std::uint32_t>(IBV_GID_TYPE_IB));
  EXPECT_EQ(ibv_query_gid_ex(ib0.get(), 1, 1, &entry, 0), ENODATA);
  EXPECT_EQ(sysfs_line("ib0/ports/1/link_layer"), "InfiniBand");
  EXPECT_EQ(std::stoi(sysfs_line("ib0/ports/1/lid"), nullptr, 16), port.lid);
  EXPECT_EQ(sysfs_line("soft0/ports/1/lid"), "0x0");
  EXPECT_EQ(sysfs_line("ib0/ports/1/gids/1"), "");
}

TEST(SoftnicInfiniBand, QpsMeetByLid) {
  LidEnd client("ib0");
  LidEnd server("ib1");
  ASSERT_EQ(client.meet(server), 0);
  ASSERT_EQ(server.meet(client), 0);
  client.memory->fill(7);
  ASSERT_EQ(server.post_recv(0, 4096), 0);
  ASSERT_EQ(client.post(IBV_WR_SEND, {}, 0, 1000), 0);
  EXPECT_EQ(status_of(client.send_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(status_of(server.recv_cq.get()), IBV_WC_SUCCESS);
  EXPECT_TRUE(server.memory->holds(7, 0, 1000));
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(client.qp.get(), &attr, IBV_QP_AV, &init), 0);
  EXPECT_EQ(attr.ah_attr.dlid, server.lid);
  EXPECT_EQ(attr.ah_attr.is_global, 0);
}

TEST(SoftnicInfiniBand, AnotherLidIsNotThePeers) {
  LidEnd client("ib0");
  LidEnd server("ib1");
  LidEnd other("ib0");
  ibv_qp_attr attr{};
  // ib1's QP under the LID of ib0: nobody answers.
  ASSERT_EQ(server.meet(client), 0);
  attr.qp_state = IBV_QPS_RTR;
  attr.ah_attr = LidEnd::path_to(other.lid);
  attr.path_mtu = IBV_MTU_4096;
  attr.dest_qp_num = server.qp->qp_num;
  ASSERT_EQ(ibv_modify_qp(client.qp.get(), &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            0);
  ASSERT_EQ(client.to_ready_to_send(), 0);
  ASSERT_EQ(client.post(IBV_WR_SEND, {}, 0, 8), 0);
  EXPECT_EQ(status_of(client.send_cq.get()), IBV_WC_RETRY_EXC_ERR);
}

TEST(SoftnicInfiniBand, PathsThatAreNone) {
  const auto ib = open_device("ib0");
  const auto roce = open_device("soft0");
  const Owned<ibv_pd> here(ibv_alloc_pd(ib.get()));
  const Owned<ibv_pd> there(ibv_alloc_pd(roce.get()));
  ibv_ah_attr path = LidEnd::path_to(1);
  EXPECT_EQ(ibv_create_ah(there.get(), &path), nullptr);  // RoCE has no LIDs
  path.dlid = 0;
  EXPECT_EQ(ibv_create_ah(here.get(), &path), nullptr);
  path.dlid = 0xc000;
  EXPECT_EQ(ibv_create_ah(here.get(), &path), nullptr);
  path.is_global = 1;
  path.grh.dgid.raw[0] = 0xfe;
  path.grh.sgid_index = 1;  // its table has one
  EXPECT_EQ(ibv_create_ah(here.get(), &path), nullptr);
}

TEST(SoftnicInfiniBand, DatagramsGoByLid) {
  LidEnd client("ib0", IBV_QPT_UD);
  LidEnd server("ib1", IBV_QPT_UD);
  for (LidEnd* it : {&client, &server}) ASSERT_EQ(it->connect({}), 0);
  ASSERT_EQ(server.post_recv(0, 4096), 0);
  ibv_ah_attr path = LidEnd::path_to(server.lid);
  const Owned<ibv_ah> ah(ibv_create_ah(client.pd.get(), &path));
  ASSERT_NE(ah, nullptr) << std::strerror(errno);
  client.memory->fill(9);
  ibv_sge sge = client.memory->sge(0, 100);
  ibv_send_wr wr = client.request(IBV_WR_SEND, {}, sge);
  wr.wr.ud.ah = ah.get();
  wr.wr.ud.remote_qpn = server.qp->qp_num;
  wr.wr.ud.remote_qkey = kQkey;
  ASSERT_EQ(client.post(wr), 0);
  const auto received = next_completion(server.recv_cq.get());
  ASSERT_TRUE(received);
  EXPECT_EQ(std::memcmp(server.memory->data() + kGrh, client.memory->data(), 100), 0);
  // Its header says where the answer goes.
  ibv_wc completion = *received;
  const Owned<ibv_ah> back(
      ibv_create_ah_from_wc(server.pd.get(), &completion, reinterpret_cast<ibv_grh*>(server.memory->data()), 1));
  EXPECT_NE(back, nullptr) << std::strerror(errno);
}

}  // namespace
}  // namespace softnic_test
