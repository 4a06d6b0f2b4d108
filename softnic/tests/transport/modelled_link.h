#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>

#include "fixture.h"

/// Common part of the tests of links and faults.
namespace softnic_test {

inline EndOptions on(const char* device) {
  EndOptions options;
  options.device = device;
  options.max_wr = 64;
  return options;
}

/// A value among the device's hw_counters; all ones where there is none.
inline std::uint64_t counter(const std::string& device, const std::string& name, unsigned port = 1) {
  std::ifstream file("/sys/class/infiniband/" + device + "/ports/" + std::to_string(port) + "/hw_counters/" + name);
  std::uint64_t value = ~0ull;
  file >> value;
  return value;
}

inline double elapsed_ms(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - since).count();
}

}  // namespace softnic_test
