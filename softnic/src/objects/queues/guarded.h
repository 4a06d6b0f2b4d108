#pragma once

#include <cerrno>
#include <cstdio>
#include <new>

#include "gdrperf/base/error.h"
#include "objects/queues/failure.h"
#include "shared/sync/limited.h"

namespace gdrperf::softnic {

/// Runs what returns a pointer; what it throws becomes errno.
template <typename F>
auto guarded(F&& make) -> decltype(make()) {
  try {
    return make();
  } catch (const VerbsFailure& failure) {
    errno = failure.error;
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
  } catch (const CallFailure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    errno = failure.errno_value;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    errno = EIO;
  }
  return nullptr;
}

}  // namespace gdrperf::softnic
