#pragma once

#include <string>

#include <gtest/gtest.h>

#include "gdrperf/base/error.h"

namespace gdrperf {

/// What `call` refuses as wrong usage: "message | hint", or the message alone where it has no hint; "taken" where it
/// refuses nothing.
template <typename F>
std::string told_by(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage) << error.what();
    return error.what() + (error.hint().empty() ? std::string() : " | " + error.hint());
  }
  return "taken";
}

}  // namespace gdrperf
