#pragma once

#include "mlx5/pages.h"
#include "mlx5/watcher.h"

namespace gdrperf::softnic::mlx5 {

/// What an open device has besides, with mlx5=on.
struct Nic {
  Pages pages;
  Watcher watcher;
};

}  // namespace gdrperf::softnic::mlx5
