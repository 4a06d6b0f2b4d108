// Stands in front of what writes files: on regular files the call that FAILING_DISK counts to (1: the first) fails with
// EIO, and each one after it with FAILING_DISK_AFTER. A disk that fails is not to be had in a test.
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace {

bool fails() {
  static std::atomic<long> calls{0};
  const char* const wanted = std::getenv("FAILING_DISK");
  const long first = wanted == nullptr ? 0 : std::atol(wanted);
  const long number = ++calls;
  if (first <= 0 || !(number == first || (number > first && std::getenv("FAILING_DISK_AFTER") != nullptr)))
    return false;
  errno = EIO;
  return true;
}

bool regular(int fd) {
  struct stat found = {};
  return ::fstat(fd, &found) == 0 && S_ISREG(found.st_mode);
}

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

#define SHOWN extern "C" __attribute__((visibility("default")))

SHOWN ssize_t write(int fd, const void* bytes, size_t size) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t)>("write");
  return regular(fd) && fails() ? -1 : real(fd, bytes, size);
}

SHOWN int fsync(int fd) {
  static const auto real = next<int (*)(int)>("fsync");
  return regular(fd) && fails() ? -1 : real(fd);
}

SHOWN int fchmod(int fd, mode_t mode) {
  static const auto real = next<int (*)(int, mode_t)>("fchmod");
  return regular(fd) && fails() ? -1 : real(fd, mode);
}

SHOWN int rename(const char* from, const char* to) {
  static const auto real = next<int (*)(const char*, const char*)>("rename");
  return fails() ? -1 : real(from, to);
}

SHOWN int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  static const auto real = next<int (*)(int, const char*, int, const char*, int)>("linkat");
  return fails() ? -1 : real(from_folder, from, to_folder, to, flags);
}
