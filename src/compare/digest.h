#pragma once

#include <cstdint>
#include <string_view>

namespace gdrperf::compare {

/// FNV-1a of 64 bits: tells documents and machines apart, guards nothing.
constexpr std::uint64_t digest(std::string_view bytes) {
  std::uint64_t value = 0xcbf29ce484222325;
  for (const char byte : bytes) {
    value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  return value;
}

}  // namespace gdrperf::compare
