#include "app/server/client_queue.h"

#include <poll.h>

#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace gdrperf::app {
namespace {

bool rings(const ClientQueue::Ticket& ticket, int timeout_ms = 0) {
  pollfd entry{ticket.fd(), POLLIN, 0};
  return ::poll(&entry, 1, timeout_ms) == 1;
}

TEST(ClientQueue, LetsThemThroughInTheOrderOfArrival) {
  ClientQueue client_queue;
  EXPECT_EQ(client_queue.front().name, "");
  // Tickets stay where they were made: no moving.
  struct Holder {
    Holder(ClientQueue& client_queue, const char* name) : ticket(client_queue.enter(name)) {}
    ClientQueue::Ticket ticket;
  };
  auto first = std::make_unique<Holder>(client_queue, "first");
  auto second = std::make_unique<Holder>(client_queue, "second");
  auto third = std::make_unique<Holder>(client_queue, "third");
  EXPECT_TRUE(first->ticket.is_turn());
  EXPECT_FALSE(second->ticket.is_turn());
  EXPECT_EQ(client_queue.front().name, "first");
  EXPECT_FALSE(rings(second->ticket));
  EXPECT_EQ(third->ticket.ahead(), 2u);
  EXPECT_TRUE(client_queue.others_wait());

  second.reset();  // the impatient
  EXPECT_TRUE(rings(third->ticket));
  third->ticket.acknowledge();
  EXPECT_FALSE(rings(third->ticket));
  EXPECT_FALSE(third->ticket.is_turn());

  first.reset();
  EXPECT_TRUE(rings(third->ticket));
  EXPECT_TRUE(third->ticket.is_turn());
  EXPECT_EQ(client_queue.front().name, "third");
  EXPECT_EQ(third->ticket.ahead(), 0u);
  EXPECT_FALSE(client_queue.others_wait());
  third.reset();
  EXPECT_EQ(client_queue.front().name, "");
}

TEST(ClientQueue, OneAtATimeWhateverTheThreads) {
  ClientQueue client_queue;
  int inside = 0;
  int served = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      ClientQueue::Ticket ticket = client_queue.enter("x");
      while (!ticket.is_turn()) {
        ASSERT_TRUE(rings(ticket, 10'000));
        ticket.acknowledge();
      }
      // Unprotected: a data race here is what the client_queue must prevent.
      EXPECT_EQ(++inside, 1);
      ++served;
      --inside;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served, 16);
}

}  // namespace
}  // namespace gdrperf::app
