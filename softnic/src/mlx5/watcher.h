#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <vector>

#include "gdrperf/base/mutex.h"
#include "mlx5/pages.h"

namespace gdrperf::softnic::mlx5 {

/// A queue that the program writes to by itself.
class Watched {
 public:
  /// On the watching thread. `rung`: its doorbell page was written to. True: something was done.
  virtual bool look(bool rung) noexcept = 0;
  /// On the watching thread, before the first look.
  virtual void prepare() noexcept {}

 protected:
  ~Watched() = default;
};

/// The thread of an open device that watches doorbells. Starts with the first queue whose addresses a
/// program asks for; polls without a pause while there is work, and sleeps between looks after 100 ms
/// without any.
class Watcher {
 public:
  Watcher() = default;
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  /// `page`: null for queues without a doorbell. 0, or the errno of starting the thread.
  int add(Watched& queue, std::shared_ptr<DoorbellPage> page);
  /// The thread does not look at it any more. Also of one that was never added.
  void remove(Watched& queue) noexcept;

 private:
  struct Entry {
    Watched* queue;
    std::size_t page;  ///< kNoPage, or index into pages_
    bool fresh;
  };
  struct Page {
    std::shared_ptr<DoorbellPage> page;
    bool rung;
  };
  void run() noexcept;
  bool pass() noexcept REQUIRES(mutex_);
  static void rest(unsigned idle_passes, bool asleep) noexcept;

  static constexpr std::size_t kNoPage = ~std::size_t{0};
  Mutex mutex_;
  std::vector<Entry> entries_ GUARDED_BY(mutex_);
  std::vector<Page> pages_ GUARDED_BY(mutex_);
  bool running_ GUARDED_BY(mutex_) = false;
  std::atomic<int> wanted_{0};  ///< threads that want the mutex: the watching one gives way
  std::atomic<bool> stop_{false};
  std::condition_variable ended_;
};

}  // namespace gdrperf::softnic::mlx5
