// Multicast groups through librdmacm: rdma_join_multicast and what comes of it.

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cm_ends.h"

namespace {

using namespace cm;

/// An address that no other program of this host has joined.
sockaddr_in group_address(std::uint8_t number) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(0xef000000u | (static_cast<std::uint32_t>(::getpid()) & 0xffff) << 8 | number);
  return address;
}

/// An id of UDP with a QP, on its way to the group.
struct GroupEnd {
  explicit GroupEnd(sockaddr_in group) : address(group), id(make_id(channel, RDMA_PS_UDP)) {
    EXPECT_EQ(rdma_resolve_addr(id.get(), nullptr, raw(), 1000), 0) << std::strerror(errno);
    expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    make_qp(id);
  }
  ~GroupEnd() {
    if (id->qp != nullptr) rdma_destroy_qp(id.get());
  }
  GroupEnd(const GroupEnd&) = delete;
  GroupEnd& operator=(const GroupEnd&) = delete;
  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&address); }
  int join() { return rdma_join_multicast(id.get(), raw(), this); }

  sockaddr_in address;
  Channel channel{rdma_create_event_channel()};
  Id id;
};

TEST(SoftnicCmMulticast, MembersGetWhatIsSentToTheGroup) {
  GroupEnd sender(group_address(1));
  GroupEnd receiver(group_address(1));
  ASSERT_EQ(receiver.join(), 0) << std::strerror(errno);
  ASSERT_EQ(sender.join(), 0) << std::strerror(errno);
  {
    const Event joined = expect_event(receiver.channel, RDMA_CM_EVENT_MULTICAST_JOIN);
    EXPECT_EQ(joined->id, receiver.id.get());
    EXPECT_EQ(joined->param.ud.private_data, &receiver);
    EXPECT_EQ(joined->param.ud.qp_num, 0xffffffu);
  }
  Event joined = expect_event(sender.channel, RDMA_CM_EVENT_MULTICAST_JOIN);
  const std::uint8_t* gid = joined->param.ud.ah_attr.grh.dgid.raw;
  EXPECT_EQ(std::memcmp(gid + 12, &sender.address.sin_addr, 4), 0);
  std::uint8_t out[64] = "to all of them";
  std::uint8_t in[40 + 64] = {};
  ibv_mr* const out_mr = rdma_reg_msgs(sender.id.get(), out, sizeof out);
  ibv_mr* const in_mr = rdma_reg_msgs(receiver.id.get(), in, sizeof in);
  ASSERT_NE(out_mr, nullptr);
  ASSERT_NE(in_mr, nullptr);
  ASSERT_EQ(rdma_post_recv(receiver.id.get(), nullptr, in, sizeof in, in_mr), 0);
  ibv_ah_attr there = joined->param.ud.ah_attr;
  ibv_ah* const ah = ibv_create_ah(sender.id->pd, &there);
  ASSERT_NE(ah, nullptr) << std::strerror(errno);
  ASSERT_EQ(rdma_post_ud_send(sender.id.get(), nullptr, out, sizeof out, out_mr, IBV_SEND_SIGNALED, ah,
                              joined->param.ud.qp_num),
            0);
  ibv_wc done{};
  ASSERT_EQ(rdma_get_send_comp(sender.id.get(), &done), 1);
  EXPECT_EQ(done.status, IBV_WC_SUCCESS);
  ASSERT_EQ(rdma_get_recv_comp(receiver.id.get(), &done), 1);
  EXPECT_EQ(done.status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(in + 40, out, sizeof out), 0);
  EXPECT_EQ(ibv_destroy_ah(ah), 0);
  // What has not been acknowledged is waited for.
  joined.reset();
  for (GroupEnd* it : {&sender, &receiver})
    EXPECT_EQ(rdma_leave_multicast(it->id.get(), it->raw()), 0) << std::strerror(errno);
  EXPECT_EQ(rdma_dereg_mr(out_mr), 0);
  EXPECT_EQ(rdma_dereg_mr(in_mr), 0);
}

TEST(SoftnicCmMulticast, WhatCannotBeJoined) {
  GroupEnd end(group_address(1));
  end.address = loopback();
  EXPECT_EQ(end.join(), -1);
  EXPECT_EQ(errno, EINVAL);
  end.address = group_address(1);
  EXPECT_EQ(rdma_leave_multicast(end.id.get(), end.raw()), -1);
  // Connections have no groups, nor has who is nowhere yet.
  Channel channel(rdma_create_event_channel());
  Id connected = make_id(channel);
  Id nowhere = make_id(channel, RDMA_PS_UDP);
  for (const Id* id : {&connected, &nowhere}) {
    EXPECT_EQ(rdma_join_multicast(id->get(), end.raw(), nullptr), -1);
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST(SoftnicCmMulticast, LeavingTakesTheEventAlong) {
  Channel second(rdma_create_event_channel());
  GroupEnd end(group_address(1));
  ASSERT_EQ(end.join(), 0);
  ASSERT_FALSE(no_event(end.channel));
  EXPECT_EQ(rdma_leave_multicast(end.id.get(), end.raw()), 0) << std::strerror(errno);
  EXPECT_TRUE(no_event(end.channel));
  // Again, and another channel hears of it.
  ASSERT_EQ(end.join(), 0);
  ASSERT_EQ(rdma_migrate_id(end.id.get(), second.get()), 0) << std::strerror(errno);
  expect_event(second, RDMA_CM_EVENT_MULTICAST_JOIN);
  EXPECT_TRUE(no_event(end.channel));
  EXPECT_EQ(rdma_leave_multicast(end.id.get(), end.raw()), 0) << std::strerror(errno);
}

}  // namespace
