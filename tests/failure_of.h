#pragma once

#include <gtest/gtest.h>

#include "gdrperf/base/error.h"

namespace gdrperf {

/// Error that `call` throws; a test failure when it throws nothing.
template <typename F>
Error failure_of(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ExitCode::kOk, "");
}

}  // namespace gdrperf
