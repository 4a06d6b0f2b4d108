#pragma once

#include <rdma/rdma_user_cm.h>
#include <sys/types.h>

#include <cstdint>
#include <deque>

#include "cm/state/id.h"
#include "gdrperf/base/unique_fd.h"

namespace gdrperf::softnic {

/// An event that waits for the program, in the words of the kernel's file.
struct CmEvent {
  CmId* id;     ///< counts it; of a request: the listener
  CmId* fresh;  ///< of a request: the id that it made
  rdma_ucm_event_resp answer;
  CmGroup* group = nullptr;  ///< of a multicast group, which counts it as well
};

/// An open /dev/infiniband/rdma_cm: one end of a socket pair is the program's
/// descriptor, readable while events wait. The other one tells when the program has
/// closed it, however it did that. Callers exclude each other.
struct CmChannel {
  std::uint64_t number = 0;  ///< inode of the program's end
  UniqueFd own;
  std::uint64_t token = 0;
  std::deque<CmEvent> events;
  bool readable = false;

  void push(const CmEvent& event);
  /// After events were taken; `fd`: the program's end.
  void settle(int fd);
};

}  // namespace gdrperf::softnic
