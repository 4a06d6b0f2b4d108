#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace gdrperf {

/// Without blanks, tabs and line ends at either side.
std::string_view trimmed(std::string_view text);

/// Parts between the separators: one more than there are separators, empty ones included.
std::vector<std::string_view> split(std::string_view text, char separator);

/// FNV-1a of 64 bits: the same in every process; tells things apart, guards and hides nothing.
constexpr std::uint64_t digest(std::string_view bytes) {
  std::uint64_t value = 0xcbf29ce484222325;
  for (const char byte : bytes) value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return value;
}

}  // namespace gdrperf
