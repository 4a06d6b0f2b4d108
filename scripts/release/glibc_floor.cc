// Linked into each released program: what would ask for a glibc above 2.28, or for a library that a node may lack.

#include <sys/syscall.h>
#include <sys/random.h>
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
#define ONE_NUMBER(name)                                  \
  __asm__(".symver old_" #name "," #name "@" OLD_VERSION); \
  double old_##name(double);                              \
  double name(double value) { return old_##name(value); }
ONE_NUMBER(exp)
ONE_NUMBER(exp2)
ONE_NUMBER(log)
ONE_NUMBER(log2)
__asm__(".symver old_pow,pow@" OLD_VERSION);
double old_pow(double, double);
double pow(double base, double exponent) { return old_pow(base, exponent); }

// 2.30
pid_t gettid() { return static_cast<pid_t>(::syscall(SYS_gettid)); }

// 2.32, read by libstdc++: says that there may be threads.
char __libc_single_threaded = 0;

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
