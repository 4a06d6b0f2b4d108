#include "mlx5/watcher.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "shared/segment/completion.h"
#include "shared/sync/spin.h"
#include "shared/sync/thread.h"

namespace gdrperf::softnic::mlx5 {
namespace {

constexpr unsigned kSpins = 2000;
constexpr std::uint64_t kAwakeNs = 100'000'000;
constexpr long kSleepNs = 50'000;

/// Counts itself among those who want something, while it lives.
class Wanting {
 public:
  explicit Wanting(std::atomic<int>& count) : count_(count) { ++count_; }
  ~Wanting() { --count_; }
  Wanting(const Wanting&) = delete;
  Wanting& operator=(const Wanting&) = delete;

 private:
  std::atomic<int>& count_;
};

}  // namespace

Watcher::~Watcher() {
  stop_ = true;
  MutexLock guard(mutex_);
  while (running_) guard.wait(ended_);
}

int Watcher::add(Watched& queue, std::shared_ptr<DoorbellPage> page) {
  const Wanting wanting(wanted_);
  const MutexLock guard(mutex_);
  const auto same = [&](const Entry& it) { return it.queue == &queue; };
  if (std::any_of(entries_.begin(), entries_.end(), same)) return 0;
  if (!running_) {
    if (const int error = start_thread("softnic-mlx5", [this] { run(); }); error != 0) return error;
    running_ = true;
  }
  std::size_t place = kNoPage;
  if (page != nullptr) {
    const auto found = std::find_if(pages_.begin(), pages_.end(), [&](const Page& it) { return it.page == page; });
    place = static_cast<std::size_t>(found - pages_.begin());
    if (found == pages_.end()) pages_.push_back({std::move(page), false});
  }
  entries_.push_back({&queue, place, true});
  return 0;
}

void Watcher::remove(Watched& queue) noexcept {
  const Wanting wanting(wanted_);
  const MutexLock guard(mutex_);
  std::erase_if(entries_, [&](const Entry& it) { return it.queue == &queue; });
}

bool Watcher::pass() noexcept {
  for (Page& it : pages_) it.rung = it.page->rung();
  bool busy = false;
  for (Entry& it : entries_) {
    if (std::exchange(it.fresh, false)) it.queue->prepare();
    busy |= it.queue->look(it.page != kNoPage && pages_[it.page].rung);
  }
  return busy;
}

void Watcher::rest(unsigned idle_passes, bool asleep) noexcept {
  if (idle_passes < kSpins) {
    cpu_relax();
  } else if (!asleep) {
    ::sched_yield();
  } else {
    const timespec pause{0, kSleepNs};
    ::nanosleep(&pause, nullptr);
  }
}

void Watcher::run() noexcept {
  unsigned idle = 0;
  std::uint64_t busy_at = monotonic_ns();
  while (!stop_.load(std::memory_order_relaxed)) {
    while (wanted_.load(std::memory_order_relaxed) > 0 && !stop_) ::sched_yield();
    bool busy = false;
    {
      const MutexLock guard(mutex_);
      busy = pass();
    }
    if (busy) {
      idle = 0;
      continue;
    }
    if (idle == 0) busy_at = monotonic_ns();
    if (idle < kSpins) ++idle;
    rest(idle, idle >= kSpins && monotonic_ns() - busy_at > kAwakeNs);
  }
  const MutexLock guard(mutex_);
  running_ = false;
  // Under the lock: whoever waits ends with this object.
  ended_.notify_all();
}

}  // namespace gdrperf::softnic::mlx5
