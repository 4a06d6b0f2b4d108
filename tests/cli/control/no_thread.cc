// Stands in front of pthread_create(): the thread that NO_THREAD counts to (1: the first), and each one after it with
// NO_THREAD_AFTER, cannot be had. A limit on processes does not bind the superuser, who runs tests in containers.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>

extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t* attributes,
                                                                     void* (*work)(void*), void* argument) {
  static std::atomic<long> started{0};
  const char* refused = std::getenv("NO_THREAD");
  const long wanted = refused == nullptr ? 0 : std::atol(refused);
  const long number = ++started;
  if (wanted > 0 && (number == wanted || (number > wanted && std::getenv("NO_THREAD_AFTER") != nullptr))) return EAGAIN;
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  return create(thread, attributes, work, argument);
}
