#pragma once

#include "gdrperf/base/unique_fd.h"

namespace gdrperf::softnic {

class LocalProcess;

/// The file of SOFTNIC=@FILE: what it says of link, faults and port holds for
/// a running process as well. Control thread only.
class LiveConfig {
 public:
  /// A descriptor that becomes readable when the file may have changed; -1 when
  /// SOFTNIC names no file.
  int watch();
  /// Reads the file again and applies it. A wrong file is one message on stderr.
  void follow(LocalProcess& process);
  int fd() const noexcept { return inotify_.get(); }
  void abandon() { inotify_.reset(); }

 private:
  UniqueFd inotify_;
};

}  // namespace gdrperf::softnic
