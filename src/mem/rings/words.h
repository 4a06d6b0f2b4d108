#pragma once

// Memory that posting threads share with the device, with the CPU and with each other, from either kind of processor.

#include <cstdint>

#include "mem/rings/format.h"

#ifndef __CUDA_ARCH__
#include <sched.h>
#include <time.h>
#endif

namespace gdrperf::mem::rings {

/// Past the caches that a device's writes do not reach.
template <typename Word>
GDRPERF_BOTH Word load(const Word* at) {
#ifdef __CUDA_ARCH__
  return *static_cast<const volatile Word*>(at);
#else
  return __atomic_load_n(at, __ATOMIC_SEQ_CST);
#endif
}

template <typename Word>
GDRPERF_BOTH void store(Word* at, Word value) {
#ifdef __CUDA_ARCH__
  *static_cast<volatile Word*>(at) = value;
#else
  __atomic_store_n(at, value, __ATOMIC_SEQ_CST);
#endif
}

/// What this thread wrote is seen by everybody before what it writes from here on. On the CPU store() sees to that.
GDRPERF_BOTH void fence() {
#ifdef __CUDA_ARCH__
  __threadfence_system();
#endif
}

/// The same, of what no other device looks at.
GDRPERF_BOTH void fence_near() {
#ifdef __CUDA_ARCH__
  __threadfence();
#endif
}

/// Into a device's register, at once.
GDRPERF_BOTH void ring(std::uint64_t* doorbell, std::uint64_t value) {
  store(doorbell, value);
#ifndef __CUDA_ARCH__
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#elif defined(__aarch64__)
  __asm__ volatile("dsb st" ::: "memory");
#endif
#endif
}

GDRPERF_BOTH bool compare_exchange(std::uint64_t* at, std::uint64_t expected, std::uint64_t wanted) {
#ifdef __CUDA_ARCH__
  return atomicCAS(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(expected),
                   static_cast<unsigned long long>(wanted)) == expected;
#else
  return __atomic_compare_exchange_n(at, &expected, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
#endif
}

/// True where nobody had it.
GDRPERF_BOTH bool try_lock(std::uint64_t* lock) {
  if (load(lock) != 0) return false;
  const bool mine = compare_exchange(lock, 0, 1);
  if (mine) fence_near();
  return mine;
}
GDRPERF_BOTH void unlock(std::uint64_t* lock) {
  fence_near();
  store(lock, std::uint64_t{0});
  fence_near();
}

struct Pair {
  std::uint64_t first;
  std::uint64_t second;
};
/// Two words, 16-byte aligned, as one load.
GDRPERF_BOTH Pair load_pair(const Pair* at) {
#ifdef __CUDA_ARCH__
  Pair pair;
  asm volatile("ld.volatile.v2.u64 {%0, %1}, [%2];" : "=l"(pair.first), "=l"(pair.second) : "l"(at) : "memory");
  return pair;
#else
  Pair pair;
  pair.first = load(&at->first);
  pair.second = load(&at->second);
  return pair;
#endif
}

/// The block of one request, in stores as wide as they come.
GDRPERF_BOTH void put_block(std::uint8_t* at, const std::uint32_t* words) {
#ifdef __CUDA_ARCH__
#pragma unroll
  for (std::uint32_t i = 0; i < kBlockWords; i += 4) {
    asm volatile("st.volatile.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(at + 4 * i), "r"(words[i]), "r"(words[i + 1]),
                 "r"(words[i + 2]), "r"(words[i + 3])
                 : "memory");
  }
#else
  __builtin_memcpy(at, words, kBlockBytes);
#endif
}

/// A clock of nanoseconds: the GPU's global timer, or the CPU's.
GDRPERF_BOTH std::uint64_t now_ns() {
#ifdef __CUDA_ARCH__
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
#else
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
#endif
}

/// Ticks of the finest clock there is.
GDRPERF_BOTH std::uint64_t now_ticks() {
#ifdef __CUDA_ARCH__
  return static_cast<std::uint64_t>(clock64());
#else
  return now_ns();
#endif
}

/// Nothing came.
GDRPERF_BOTH void rest() {
#ifndef __CUDA_ARCH__
  ::sched_yield();
#endif
}

}  // namespace gdrperf::mem::rings
