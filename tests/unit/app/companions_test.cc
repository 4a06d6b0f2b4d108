#include "app/server/companions.h"

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

TEST(Companions, ComeWithTheTicketOfTheSessionThatIsServed) {
  Companions companions;
  EXPECT_THROW(Companions::Guest(companions, ""), Error);
  std::string old;
  {
    const Companions::Host host(companions);
    old = host.ticket();
    EXPECT_EQ(old.size(), 64u);
    const Companions::Guest guest(companions, old);
    const Companions::Guest another(companions, old);
    EXPECT_THROW(Companions::Guest(companions, old + "0"), Error);
    EXPECT_THROW(Companions::Guest(companions, ""), Error);
  }
  EXPECT_THROW(Companions::Guest(companions, old), Error);
  const Companions::Host host(companions);
  EXPECT_NE(host.ticket(), old);
  EXPECT_THROW(Companions::Guest(companions, old), Error);
}

TEST(Companions, AreWaitedForAndCounted) {
  Companions companions;
  std::atomic<bool> left = false;
  std::thread leaving;
  {
    const Companions::Host host(companions);
    auto guests = std::make_unique<std::list<Companions::Guest>>();
    for (int i = 0; i < Companions::kMost; ++i) guests->emplace_back(companions, host.ticket());
    EXPECT_THROW(Companions::Guest(companions, host.ticket()), Error);
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
