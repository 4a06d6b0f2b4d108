#include "shared/sync/thread.h"

#include <pthread.h>
#include <signal.h>

#include <memory>
#include <utility>

namespace gdrperf::softnic {
namespace {

void* run_body(void* argument) {
  const std::unique_ptr<std::function<void()>> body(static_cast<std::function<void()>*>(argument));
  (*body)();
  return nullptr;
}

}  // namespace

int start_thread(const char* name, std::function<void()> body) {
  auto* owned = new std::function<void()>(std::move(body));
  // The program's signals are for the program's threads.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const int error = ::pthread_create(&thread, nullptr, &run_body, owned);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    delete owned;
    return error;
  }
  ::pthread_setname_np(thread, name);
  ::pthread_detach(thread);
  return 0;
}

}  // namespace gdrperf::softnic
