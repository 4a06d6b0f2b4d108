#pragma once

#include <string>

namespace gdrperf::verbs {

/// The libibverbs that this process uses: its version and that of its rdma-core, as its file's name has
/// them ("1.14.44.0 of rdma-core 44.0"), and the file. Any thread.
struct Library {
  std::string version;  ///< "" where the name has none
  std::string file;
};
Library library();

}  // namespace gdrperf::verbs
