#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gdrperf/base/mutex.h"
#include "objects/attributes/context.h"
#include "shared/segment/layout.h"

namespace gdrperf::softnic {

/// A CQ, as its channel knows it.
struct EventSource {
  CqShared* shared = nullptr;
  std::uint32_t events_fetched = 0;  ///< modulo 2^32, under the channel's lock
};

/// A completion channel: its descriptor is an eventfd that counts events not
/// yet fetched; the CQs say which they are.
struct Channel : ibv_comp_channel {
  explicit Channel(Context& context);  // throws VerbsFailure
  ~Channel();
  /// Waits (unless the descriptor is non-blocking) for the next event.
  /// 0, or an errno.
  int next_event(EventSource*& source);
  void add(EventSource* source);
  /// Also takes back events of this one that were raised and not fetched.
  void remove(EventSource* source);

  Process& process;
  std::uint32_t number;

 private:
  Mutex mutex_;
  std::vector<EventSource*> sources_ GUARDED_BY(mutex_);
  std::size_t turn_ GUARDED_BY(mutex_) = 0;
};

}  // namespace gdrperf::softnic
