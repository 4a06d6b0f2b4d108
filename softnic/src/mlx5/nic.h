#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <map>

#include "gdrperf/base/mutex.h"
#include "mlx5/pages.h"
#include "mlx5/watcher.h"

namespace gdrperf::softnic::mlx5 {

/// What an open device has besides, with mlx5=on.
struct Nic {
  Mutex mutex;
  std::map<std::uint32_t, ibv_pd*> pds GUARDED_BY(mutex);  ///< whose numbers the program asked for
  Pages pages;
  Watcher watcher;
};

}  // namespace gdrperf::softnic::mlx5
