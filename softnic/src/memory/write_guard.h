#pragma once

#include "gdrperf/base/unique_fd.h"
#include "memory/page_range.h"

namespace gdrperf::softnic {

/// Holds up every write by another thread to a range, from construction to
/// destruction: the writer sleeps in its page fault (userfaultfd, write
/// protection) and finds whatever mapping is there when it is woken.
class WriteGuard {
 public:
  /// Whether this kernel and user can; probed once.
  static bool available();

  explicit WriteGuard(PageRange range);
  /// False: the range could not be protected, writes go through.
  bool holds() const noexcept { return holds_; }

 private:
  UniqueFd fd_;
  bool holds_ = false;
};

}  // namespace gdrperf::softnic
