#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include "fixture.h"

namespace softnic_test {

/// For good, in a process of its own.
inline void become_user(uid_t user) {
  ASSERT_EQ(::setresgid(user, user, user), 0);
  ASSERT_EQ(::setresuid(user, user, user), 0);
}

/// Two processes of this user meet; one reads from the other as often as told.
inline void meet_a_friend(int reads) {
  SecondProcess other([](int socket) {
    End end;
    end.memory->fill(7);
    meet_parent(end, socket);
    hear<int>(socket);
  });
  End end;
  const Address peer = meet(end, other);
  for (int i = 0; i < reads; ++i) {
    ASSERT_EQ(end.post(IBV_WR_RDMA_READ, peer, 0, 65536), 0);
    ASSERT_EQ(status_of(end.send_cq.get()), IBV_WC_SUCCESS);
  }
  EXPECT_TRUE(end.memory->holds(7, 0, 65536));
  tell(other.socket(), 1);
  EXPECT_EQ(other.wait(), 0);
}

}  // namespace softnic_test
