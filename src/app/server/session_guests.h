#pragma once

#include <condition_variable>
#include <string>

#include "gdrperf/base/mutex.h"

namespace gdrperf::app {

/// Further connections of the client whose turn it is, for runs at the same time. Thread-safe.
class SessionGuests {
 public:
  /// Of one client.
  static constexpr int kMost = 63;

  /// The session whose turn it is. Its end waits for those that came along: they end as any session does.
  class Host {
   public:
    explicit Host(SessionGuests& session_guests);
    ~Host();
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;
    /// What its further connections show.
    const std::string& ticket() const { return ticket_; }

   private:
    SessionGuests& guests_of_;
    std::string ticket_;
  };

  /// A connection that came along. Throws peer_error for a ticket that is not the host's, and for one connection too
  /// many.
  class Guest {
   public:
    Guest(SessionGuests& session_guests, const std::string& ticket);
    ~Guest();
    Guest(const Guest&) = delete;
    Guest& operator=(const Guest&) = delete;

   private:
    SessionGuests& guests_of_;
  };

 private:
  Mutex mutex_;
  std::string ticket_ GUARDED_BY(mutex_);  ///< "": nobody is let in
  int guests_ GUARDED_BY(mutex_) = 0;
  std::condition_variable one_left_;
};

}  // namespace gdrperf::app
