#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "cm/state/manager.h"
#include "gdrperf/base/mutex.h"

namespace gdrperf::softnic {

/// A command as it came, and the channel that it came over.
struct CmCall {
  Cm& cm;
  std::uint64_t channel;
  int fd;
  std::span<const std::uint8_t> in;
  std::size_t out;  ///< bytes that there is room for

  /// False: fewer bytes than the command has. Fields that older headers lack stay zero.
  template <typename T>
  bool read(T& command, std::size_t least = sizeof(T)) const {
    if (in.size() < least) return false;
    command = {};
    std::memcpy(&command, in.data(), std::min(in.size(), sizeof command));
    return true;
  }
  template <typename T>
  int answer(std::uint64_t where, const T& value, std::size_t least = sizeof(T)) const {
    if (out < least) return -ENOSPC;
    std::memcpy(reinterpret_cast<void*>(where), &value, std::min(out, sizeof value));
    return 0;
  }
};

/// Runs `act` on the id with this handle.
template <typename Act>
int with_id(const CmCall& call, std::uint32_t handle, Act&& act) NO_THREAD_SAFETY_ANALYSIS {  // `act` is called locked
  const MutexLock guard(call.cm.mutex());
  CmChannel* channel = call.cm.table().channel(call.channel);
  CmId* id = channel == nullptr ? nullptr : call.cm.table().id(*channel, handle);
  return id == nullptr ? -ENOENT : act(*id);
}

}  // namespace gdrperf::softnic
