#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "datagrams.h"

/// Multicast groups of datagrams.
namespace softnic_test {
namespace {

/// One that no other program of this host is in.
ibv_gid group(std::uint8_t number, std::uint8_t first = 0xff) {
  ibv_gid gid{};
  const pid_t process = ::getpid();
  if (first == 0xff) {
    gid.raw[0] = 0xff;
    gid.raw[1] = 0x0e;
    std::memcpy(gid.raw + 8, &process, sizeof process);
  } else {  // of IPv4
    gid.raw[10] = gid.raw[11] = 0xff;
    gid.raw[12] = first;
    std::memcpy(gid.raw + 13, &process, 2);
  }
  gid.raw[15] = number;
  return gid;
}

/// A sender that is in a group, and leaves it at the end.
struct Member : Sender {
  explicit Member(const ibv_gid& to, const EndOptions& given = ud()) : Sender(given), gid(to) {
    EXPECT_EQ(ibv_attach_mcast(qp.get(), &gid, 0), 0) << std::strerror(errno);
  }
  ~Member() { leave(); }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;
  void leave() {
    if (!in) return;
    EXPECT_EQ(ibv_detach_mcast(qp.get(), &gid, 0), 0);
    in = false;
  }
  const ibv_gid gid;
  bool in = true;
};

Address address_of(const ibv_gid& gid) {
  Address to;
  to.qpn = 0xffffff;
  to.gid = gid;
  return to;
}

TEST(SoftnicMulticast, EachMemberGetsItOnce) {
  for (const std::uint8_t first : {std::uint8_t{0xff}, std::uint8_t{0xef}}) {
    const std::uint8_t index = first == 0xff ? 1 : kGidIndex;
    const ibv_gid gid = group(1, first);
    Sender client(ud("soft0", index));
    Member here(gid, ud("soft0", index));
    Member there(gid, ud("soft1", index));
    Member other(group(2, first), ud("soft0", index));
    client.memory->fill(4);
    for (Member* it : {&here, &there, &other}) {
      ASSERT_EQ(it->post_recv(0, 4096, 1), 0);
      ASSERT_EQ(it->post_recv(4096, 4096, 2), 0);
    }
    // The number of the group's QP is not looked at by who sends it (specification, 10.5.1: all ones).
    ASSERT_EQ(client.send(address_of(gid), 0, 1000, kQkey, IBV_WR_SEND_WITH_IMM), IBV_WC_SUCCESS);
    for (Member* it : {&here, &there}) {
      const auto received = next_completion(it->recv_cq.get());
      ASSERT_TRUE(received);
      EXPECT_EQ(received->status, IBV_WC_SUCCESS);
      EXPECT_EQ(received->byte_len, kGrh + 1000);
      EXPECT_EQ(received->src_qp, client.qp->qp_num);
      EXPECT_EQ(received->qp_num, it->qp->qp_num);
      EXPECT_EQ(received->imm_data, 77u);
      EXPECT_EQ(std::memcmp(it->memory->data() + kGrh, client.memory->data(), 1000), 0);
      EXPECT_TRUE(stays_empty(it->recv_cq.get()));
      // Whoever answers does so to the sender alone.
      ibv_wc completion = *received;
      ibv_ah_attr attr{};
      ASSERT_EQ(
          ibv_init_ah_from_wc(it->context.get(), 1, &completion, reinterpret_cast<ibv_grh*>(it->memory->data()), &attr),
          0);
      const ibv_gid sender = client.address().gid;
      EXPECT_EQ(std::memcmp(&attr.grh.dgid, &sender, sizeof sender), 0);
    }
    EXPECT_TRUE(stays_empty(other.recv_cq.get()));
    // Who has left gets nothing more; who was joined twice has left at once.
    EXPECT_EQ(ibv_attach_mcast(there.qp.get(), &gid, 0), 0);
    there.leave();
    ASSERT_EQ(client.send(address_of(gid), 0, 8), IBV_WC_SUCCESS);
    EXPECT_EQ(status_of(here.recv_cq.get()), IBV_WC_SUCCESS);
    EXPECT_TRUE(stays_empty(there.recv_cq.get()));
  }
}

TEST(SoftnicMulticast, WhatIsNoGroupOrNoMember) {
  Sender end;
  const ibv_gid gid = group(1);
  const ibv_gid unicast = end.address().gid;
  EXPECT_EQ(ibv_attach_mcast(end.qp.get(), &unicast, 0), EINVAL);
  EXPECT_EQ(ibv_detach_mcast(end.qp.get(), &gid, 0), EINVAL);
  Pair connected;
  EXPECT_EQ(ibv_attach_mcast(connected.client.qp.get(), &gid, 0), EINVAL);
  // A QP is not destroyed in a group.
  ASSERT_EQ(ibv_attach_mcast(end.qp.get(), &gid, 0), 0);
  EXPECT_EQ(ibv_destroy_qp(end.qp.get()), EBUSY);
  ASSERT_EQ(end.post_recv(0, 4096), 0);
  Sender client;
  EXPECT_EQ(client.send(address_of(gid), 0, 8, kQkey + 1), IBV_WC_SUCCESS);
  EXPECT_TRUE(stays_empty(end.recv_cq.get()));
  ASSERT_EQ(client.send(address_of(gid), 0, 8), IBV_WC_SUCCESS);
  EXPECT_EQ(status_of(end.recv_cq.get()), IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_detach_mcast(end.qp.get(), &gid, 0), 0);
  ibv_device_attr attr{};
  ASSERT_EQ(ibv_query_device(end.context.get(), &attr), 0);
  EXPECT_GT(attr.max_mcast_grp, 0);
  EXPECT_GT(attr.max_total_mcast_qp_attach, 0);
}

TEST(SoftnicMulticast, ItsOwnComesBackUnlessBlocked) {
  const ibv_gid gid = group(1);
  Member member(gid);
  ASSERT_EQ(member.post_recv(4096, 4096), 0);
  ASSERT_EQ(member.send(address_of(gid), 0, 8), IBV_WC_SUCCESS);
  EXPECT_EQ(status_of(member.recv_cq.get()), IBV_WC_SUCCESS);
  Sender quiet;
  ibv_qp_init_attr_ex attr{};
  attr.send_cq = quiet.send_cq.get();
  attr.recv_cq = quiet.recv_cq.get();
  attr.qp_type = IBV_QPT_UD;
  attr.cap = {16, 16, 2, 2, 64};
  attr.sq_sig_all = 1;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  attr.pd = quiet.pd.get();
  attr.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
  quiet.qp.reset(ibv_create_qp_ex(quiet.context.get(), &attr));
  ASSERT_NE(quiet.qp, nullptr) << std::strerror(errno);
  ASSERT_EQ(quiet.to_init(), 0);
  ASSERT_EQ(quiet.connect({}), 0);
  ASSERT_EQ(ibv_attach_mcast(quiet.qp.get(), &gid, 0), 0);
  ASSERT_EQ(quiet.post_recv(4096, 4096), 0);
  ASSERT_EQ(member.post_recv(4096, 4096), 0);
  ASSERT_EQ(quiet.send(address_of(gid), 0, 8), IBV_WC_SUCCESS);
  EXPECT_EQ(status_of(member.recv_cq.get()), IBV_WC_SUCCESS);
  EXPECT_TRUE(stays_empty(quiet.recv_cq.get()));
  EXPECT_EQ(ibv_detach_mcast(quiet.qp.get(), &gid, 0), 0);
}

/// Joins, says so, and waits for one datagram.
void join_and_hear(int socket) {
  const auto gid = hear<ibv_gid>(socket);
  Member member(gid);
  EXPECT_EQ(member.post_recv(0, 4096), 0);
  tell(socket, 1);
  EXPECT_EQ(status_of(member.recv_cq.get()), IBV_WC_SUCCESS);
  tell(socket, 2);
  EXPECT_EQ(hear<int>(socket), 3);
}

TEST(SoftnicMulticast, WhoHasJoinedIsReachedFromThenOn) {
  const ibv_gid gid = group(1);
  Sender client;
  for (int round = 0; round < 15; ++round) {
    SecondProcess first(&join_and_hear);
    SecondProcess second(&join_and_hear);
    for (SecondProcess* it : {&first, &second}) tell(it->socket(), gid);
    // A sender that has just looked who there is finds the next one all the same.
    for (SecondProcess* it : {&first, &second}) {
      EXPECT_EQ(hear<int>(it->socket()), 1);
      ASSERT_EQ(client.send(address_of(gid), 0, 8), IBV_WC_SUCCESS);
      EXPECT_EQ(hear<int>(it->socket()), 2);
    }
    // Both ways to go: one leaves, the other is killed.
    tell(first.socket(), 3);
    EXPECT_EQ(first.wait(), 0);
    second.kill();
    EXPECT_NE(second.wait(), 0);
    ASSERT_EQ(client.send(address_of(gid), 0, 8), IBV_WC_SUCCESS);
  }
}

TEST(SoftnicMulticast, AChildIsNoMember) {
  const ibv_gid gid = group(1);
  Member member(gid);
  SecondProcess child([&](int socket) {
    Sender end;
    EXPECT_EQ(ibv_detach_mcast(end.qp.get(), &gid, 0), EINVAL);
    tell(socket, 1);
    EXPECT_EQ(hear<int>(socket), 2);
  });
  EXPECT_EQ(hear<int>(child.socket()), 1);
  ASSERT_EQ(member.post_recv(0, 4096, 1), 0);
  Sender client;
  ASSERT_EQ(client.send(address_of(gid), 0, 8), IBV_WC_SUCCESS);
  EXPECT_EQ(status_of(member.recv_cq.get()), IBV_WC_SUCCESS);
  tell(child.socket(), 2);
  EXPECT_EQ(child.wait(), 0);
}

TEST(SoftnicMulticast, TheLinkModelAndFaultsAreTheSenders) {
  const ibv_gid gid = group(1);
  Member near(gid, ud("mid0"));
  Member there(gid, ud("soft0"));
  Sender far(ud("mid0"));
  far.memory->fill(2);
  for (Member* it : {&near, &there}) ASSERT_EQ(it->post_recv(0, 4096), 0);
  ASSERT_EQ(far.send(address_of(gid), 0, 1000), IBV_WC_SUCCESS);
  for (Member* it : {&near, &there}) {
    EXPECT_EQ(status_of(it->recv_cq.get()), IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(it->memory->data() + kGrh, far.memory->data(), 1000), 0);
    ASSERT_EQ(it->post_recv(0, 4096), 0);
  }
  Sender dropping(ud("drop0"));
  ASSERT_EQ(dropping.send(address_of(gid), 0, 8), IBV_WC_SUCCESS);
  EXPECT_TRUE(stays_empty(there.recv_cq.get()));
}

}  // namespace
}  // namespace softnic_test
