#pragma once

#include <concepts>
#include <exception>
#include <functional>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#include "gdrperf/base/error.h"

namespace gdrperf {

/// Error(kEnvironment): "no thread for the heartbeat: ...", with the limit that is in the way.
Error no_thread(const char* purpose, const std::system_error& cause);

/// A thread that runs `work(stop_token)`, or `work()`, and is joined when the jthread goes. What `work` throws is
/// handed to `failed(std::exception_ptr)` on that thread; nothing that `failed` throws gets any further. Throws
/// no_thread() where the system has no thread left. `purpose` is for people: "the heartbeat".
template <class Work, class Failed>
  requires std::invocable<Failed&, std::exception_ptr>
std::jthread start_thread(const char* purpose, Work work, Failed failed) {
  try {
    return std::jthread([work = std::move(work), failed = std::move(failed)](const std::stop_token& stop) mutable {
      try {
        if constexpr (std::invocable<Work&, const std::stop_token&>) std::invoke(work, stop);
        else std::invoke(work);
      } catch (...) {
        try {
          failed(std::current_exception());
        } catch (...) {  // out of memory, most of all: whoever waits sees that the thread has ended
        }
      }
    });
  } catch (const std::system_error& error) {
    throw no_thread(purpose, error);
  }
}

}  // namespace gdrperf
