#pragma once

#include <cerrno>

#include "abi/libc/forward.h"

/// How an exported function hands a call on to the real library, for each way
/// in which verbs report failure.
#define SOFTNIC_REFUSE_POINTER(error) \
  do { \
    errno = (error); \
    return nullptr; \
  } while (false)

#define SOFTNIC_FORWARD_POINTER(name, ...) \
  const auto real = SOFTNIC_REAL(name); \
  if (real == nullptr) SOFTNIC_REFUSE_POINTER(EOPNOTSUPP); \
  return real(__VA_ARGS__)

#define SOFTNIC_FORWARD_ERROR(name, ...) \
  const auto real = SOFTNIC_REAL(name); \
  return real != nullptr ? real(__VA_ARGS__) : EOPNOTSUPP

#define SOFTNIC_FORWARD_MINUS(name, ...) \
  const auto real = SOFTNIC_REAL(name); \
  if (real != nullptr) return real(__VA_ARGS__); \
  errno = EOPNOTSUPP; \
  return -1
