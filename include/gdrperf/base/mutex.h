#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

// Lock annotations that clang's -Wthread-safety checks (scripts/check); empty for other compilers.
#if defined(__clang__)
#define GDRPERF_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define GDRPERF_THREAD_SAFETY(attribute)
#endif

#define CAPABILITY(name) GDRPERF_THREAD_SAFETY(capability(name))
#define SCOPED_CAPABILITY GDRPERF_THREAD_SAFETY(scoped_lockable)
/// Of a member: read and written only while the mutex is held.
#define GUARDED_BY(mutex) GDRPERF_THREAD_SAFETY(guarded_by(mutex))
/// Of a function: its caller holds the mutex.
#define REQUIRES(...) GDRPERF_THREAD_SAFETY(requires_capability(__VA_ARGS__))
/// Of a function: its caller does not hold the mutex.
#define EXCLUDES(...) GDRPERF_THREAD_SAFETY(locks_excluded(__VA_ARGS__))
/// Of a mutex: locked before another one, where both are held.
#define ACQUIRED_BEFORE(...) GDRPERF_THREAD_SAFETY(acquired_before(__VA_ARGS__))
#define ACQUIRE(...) GDRPERF_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) GDRPERF_THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))
#define RELEASE(...) GDRPERF_THREAD_SAFETY(release_capability(__VA_ARGS__))
#define RETURN_CAPABILITY(mutex) GDRPERF_THREAD_SAFETY(lock_returned(mutex))
/// Of a function that the analysis cannot follow; say why beside it.
#define NO_THREAD_SAFETY_ANALYSIS GDRPERF_THREAD_SAFETY(no_thread_safety_analysis)

namespace gdrperf {

/// std::mutex with the attributes that libstdc++'s lacks. Lock it by MutexLock.
class CAPABILITY("mutex") Mutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  bool try_lock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

/// Holds a mutex while it lives, or until unlock(). Waits for a condition as std::unique_lock does; the
/// caller looks at the condition itself, in a loop, because the analysis does not look into lambdas.
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() RELEASE() = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void unlock() RELEASE() { lock_.unlock(); }
  void lock() ACQUIRE() { lock_.lock(); }

  void wait(std::condition_variable& condition) { condition.wait(lock_); }
  std::cv_status wait_until(std::condition_variable& condition, std::chrono::steady_clock::time_point deadline) {
    return condition.wait_until(lock_, deadline);
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace gdrperf
