#include "app/server/session_guests.h"

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "gdrperf/base/error.h"

namespace gdrperf::app {
namespace {

TEST(SessionGuests, ComeWithTheTicketOfTheSessionThatIsServed) {
  SessionGuests session_guests;
  EXPECT_THROW(SessionGuests::Guest(session_guests, ""), Error);
  std::string old;
  {
    const SessionGuests::Host host(session_guests);
    old = host.ticket();
    EXPECT_EQ(old.size(), 64u);
    const SessionGuests::Guest guest(session_guests, old);
    const SessionGuests::Guest another(session_guests, old);
    EXPECT_THROW(SessionGuests::Guest(session_guests, old + "0"), Error);
    EXPECT_THROW(SessionGuests::Guest(session_guests, ""), Error);
  }
  EXPECT_THROW(SessionGuests::Guest(session_guests, old), Error);
  const SessionGuests::Host host(session_guests);
  EXPECT_NE(host.ticket(), old);
  EXPECT_THROW(SessionGuests::Guest(session_guests, old), Error);
}

TEST(SessionGuests, AreWaitedForAndCounted) {
  SessionGuests session_guests;
  std::atomic<bool> left = false;
  std::thread leaving;
  {
    const SessionGuests::Host host(session_guests);
    auto guests = std::make_unique<std::list<SessionGuests::Guest>>();
    for (int i = 0; i < SessionGuests::kMost; ++i) guests->emplace_back(session_guests, host.ticket());
    EXPECT_THROW(SessionGuests::Guest(session_guests, host.ticket()), Error);
    leaving = std::thread([&left, guests = std::move(guests)]() mutable {
      left = true;
      guests.reset();
    });
  }
  EXPECT_TRUE(left);
  leaving.join();
}

}  // namespace
}  // namespace gdrperf::app
