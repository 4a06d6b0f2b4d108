#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <string>

#include "gdrperf/base/mutex.h"
#include "gdrperf/base/unique_fd.h"

namespace gdrperf::app {

/// One at a time, in the order of arrival. Thread-safe.
class ClientQueue {
  struct Visitor {
    std::string name;
    UniqueFd bell;
    std::chrono::steady_clock::time_point since{};  ///< its turn began
  };

 public:
  /// The one whose turn it is; no name when nobody is there.
  struct Front {
    std::string name;
    std::chrono::nanoseconds served{};
  };

  /// A place in the queue, given up on destruction. Used by one thread.
  class Ticket {
   public:
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;
    ~Ticket();

    bool is_turn() const;
    /// How many come first, the one being served included.
    std::size_t ahead() const;
    /// Becomes readable whenever the queue in front has changed.
    int fd() const { return place_->bell.get(); }
    /// Makes fd() wait for the next change.
    void acknowledge();

   private:
    friend class ClientQueue;
    Ticket(ClientQueue& client_queue, std::list<Visitor>::iterator place)
        : queue_of_clients_(client_queue), place_(place) {}

    ClientQueue& queue_of_clients_;
    std::list<Visitor>::iterator place_;
  };

  /// Joins the queue as `name`. Throws Error(kEnvironment) when there are no
  /// descriptors left. The client_queue must outlive the ticket.
  Ticket enter(std::string name);

  Front front() const;
  /// Whether anybody but the front is in the queue.
  bool others_wait() const;

 private:
  void begin_turn() REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::list<Visitor> queue_ GUARDED_BY(mutex_);  ///< the front's turn it is
};

}  // namespace gdrperf::app
