#include "app/server/turnstile.h"

#include <poll.h>

#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace gdrperf::app {
namespace {

bool rings(const Turnstile::Ticket& ticket, int timeout_ms = 0) {
  pollfd entry{ticket.fd(), POLLIN, 0};
  return ::poll(&entry, 1, timeout_ms) == 1;
}

TEST(Turnstile, LetsThemThroughInTheOrderOfArrival) {
  Turnstile turnstile;
  EXPECT_EQ(turnstile.front().name, "");
  // Tickets stay where they were made: no moving.
  struct Holder {
    Holder(Turnstile& turnstile, const char* name) : ticket(turnstile.enter(name)) {}
    Turnstile::Ticket ticket;
  };
  auto first = std::make_unique<Holder>(turnstile, "first");
  auto second = std::make_unique<Holder>(turnstile, "second");
  auto third = std::make_unique<Holder>(turnstile, "third");
  EXPECT_TRUE(first->ticket.is_turn());
  EXPECT_FALSE(second->ticket.is_turn());
  EXPECT_EQ(turnstile.front().name, "first");
  EXPECT_FALSE(rings(second->ticket));
  EXPECT_EQ(third->ticket.ahead(), 2u);
  EXPECT_TRUE(turnstile.others_wait());

  second.reset();  // the impatient
  EXPECT_TRUE(rings(third->ticket));
  third->ticket.acknowledge();
  EXPECT_FALSE(rings(third->ticket));
  EXPECT_FALSE(third->ticket.is_turn());

  first.reset();
  EXPECT_TRUE(rings(third->ticket));
  EXPECT_TRUE(third->ticket.is_turn());
  EXPECT_EQ(turnstile.front().name, "third");
  EXPECT_EQ(third->ticket.ahead(), 0u);
  EXPECT_FALSE(turnstile.others_wait());
  third.reset();
  EXPECT_EQ(turnstile.front().name, "");
}

TEST(Turnstile, OneAtATimeWhateverTheThreads) {
  Turnstile turnstile;
  int inside = 0;
  int served = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      Turnstile::Ticket ticket = turnstile.enter("x");
      while (!ticket.is_turn()) {
        ASSERT_TRUE(rings(ticket, 10'000));
        ticket.acknowledge();
      }
      // Unprotected: a data race here is what the turnstile must prevent.
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
