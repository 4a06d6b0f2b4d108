#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <span>

namespace gdrperf::verbs {

/// Owner of ibv_get_device_list's result; empty when the call fails (no
/// kernel support is one reason among others: to the user it is no device).
class DeviceList {
 public:
  DeviceList() { list_.reset(::ibv_get_device_list(&count_)); }
  std::span<ibv_device*> devices() const noexcept {
    return {list_.get(), list_ ? static_cast<std::size_t>(count_) : 0};
  }

 private:
  struct Free {
    void operator()(ibv_device** list) const noexcept { ::ibv_free_device_list(list); }
  };
  int count_ = 0;
  std::unique_ptr<ibv_device*, Free> list_;
};

}  // namespace gdrperf::verbs
