// Linked into each released program: what would ask for a glibc above 2.28, or for a library that a node may lack.

#include <link.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#pragma GCC visibility push(hidden)
extern "C" {

// New versions in 2.29, which no longer set errno by themselves; nothing here reads that.
#if defined(__x86_64__)
#define OLD_VERSION "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define OLD_VERSION "GLIBC_2.17"
#endif
#define VISIBLE __attribute__((visibility("default")))
#define ONE_NUMBER(name)                                   \
  __asm__(".symver old_" #name "," #name "@" OLD_VERSION); \
  VISIBLE double old_##name(double);                        \
  double name(double value) { return old_##name(value); }
ONE_NUMBER(exp)
ONE_NUMBER(exp2)
ONE_NUMBER(log)
ONE_NUMBER(log2)
__asm__(".symver old_pow,pow@" OLD_VERSION);
VISIBLE double old_pow(double, double);
double pow(double base, double exponent) { return old_pow(base, exponent); }

// 2.30: waits by the clock of the condition, which std::condition_variable leaves at CLOCK_REALTIME, and looks at its
// own clock afterwards.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  constexpr long kSecond = 1'000'000'000;
  timespec now;
  timespec at;
  ::clock_gettime(clock, &now);
  ::clock_gettime(CLOCK_REALTIME, &at);
  at.tv_sec += until->tv_sec - now.tv_sec;
  at.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (at.tv_nsec < 0) at = {at.tv_sec - 1, at.tv_nsec + kSecond};
  if (at.tv_nsec >= kSecond) at = {at.tv_sec + 1, at.tv_nsec - kSecond};
  return ::pthread_cond_timedwait(condition, mutex, &at);
}
pid_t gettid() { return static_cast<pid_t>(::syscall(SYS_gettid)); }

// 2.32, read by libstdc++: says that there may be threads.
char __libc_single_threaded = 0;

// 2.35, called by libgcc for each frame of an exception: which object has this code, and where its unwind table is.
struct FoundObject {
  unsigned long long flags;
  const void* begin;
  const void* end;
  void* link_map;
  const void* eh_frame;
};
int _dl_find_object(void* pc, FoundObject* found) {
  struct Search {
    std::uintptr_t pc;
    FoundObject* found;
  } search{reinterpret_cast<std::uintptr_t>(pc), found};
  const auto visit = [](dl_phdr_info* object, std::size_t, void* argument) {
    const auto& [address, result] = *static_cast<Search*>(argument);
    bool here = false;
    std::uintptr_t table = 0;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const auto& part = object->dlpi_phdr[i];
      const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
      if (part.p_type == PT_GNU_EH_FRAME) table = begin;
      if (part.p_type != PT_LOAD || address < begin || address - begin >= part.p_memsz) continue;
      here = true;
      result->begin = reinterpret_cast<const void*>(begin);
      result->end = reinterpret_cast<const void*>(begin + part.p_memsz);
    }
    if (!here || table == 0) return 0;
    result->flags = 0;
    result->link_map = nullptr;
    result->eh_frame = reinterpret_cast<const void*>(table);
    return 1;
  };
  return ::dl_iterate_phdr(visit, &search) == 1 ? 0 : -1;
}

// 2.36, called by libstdc++'s random_device.
std::uint32_t arc4random() {
  std::uint32_t value = 0;
  while (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
  }
  return value;
}

// hwloc asks udev for serial numbers and the like, which nothing here reads; it goes on where there is none.
void* udev_new() { return nullptr; }
void* udev_unref(void*) { return nullptr; }
void* udev_device_new_from_subsystem_sysname(void*, const char*, const char*) { return nullptr; }
const char* udev_device_get_property_value(void*, const char*) { return nullptr; }
void* udev_device_unref(void*) { return nullptr; }

}
#pragma GCC visibility pop
