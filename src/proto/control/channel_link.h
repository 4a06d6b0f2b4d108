#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "gdrperf/base/mutex.h"
#include "gdrperf/base/patience.h"
#include "gdrperf/base/unique_fd.h"
#include "gdrperf/proto/channel.h"

namespace gdrperf::proto {

/// Bytes of the length, big endian, before each message.
inline constexpr std::size_t kHeaderBytes = 4;

/// `text` behind its length.
std::string framed(const std::string& text);
/// "4.5 s".
std::string seconds_text(std::chrono::nanoseconds timeout);

/// State that the heartbeat's thread and the channel's thread share.
struct Channel::Link {
  explicit Link(UniqueFd fd) : socket(std::move(fd)) {}
  void set_work(const std::string& what);
  void beat() noexcept;
  void listen() noexcept;
  void expect(std::chrono::nanoseconds after);
  void heard();
  std::optional<std::chrono::nanoseconds> silent();  ///< for how long, once that is too long
  bool heard_lately();
  void run(const std::stop_token& stop);

  UniqueFd socket;
  Mutex sending;  ///< a frame goes out whole
  std::atomic<std::uint64_t> sent{0};
  std::atomic<std::uint64_t> taken{0};
  std::atomic<std::uint64_t> steps{0};
  std::string work GUARDED_BY(sending);
  std::string peer;  ///< who, and how long, and whom to tell: set before `beater` starts
  std::function<void(const std::string&)> tell;
  std::atomic<bool> working{false};
  Mutex listening;
  Patience silence GUARDED_BY(listening){
      kSilence};  ///< since a byte came; both threads look, so that neither's work hides it
  int unread GUARDED_BY(listening) = 0;              ///< bytes, at listen()'s last look
  bool told GUARDED_BY(listening) = false;           ///< what tell() is for
  std::mutex pausing;  ///< guards nothing: `pause` wants one
  std::condition_variable_any pause;
  std::jthread beater;  ///< last: joined first
};

}  // namespace gdrperf::proto
