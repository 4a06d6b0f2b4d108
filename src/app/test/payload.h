#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gdrperf::app {

/// perftest's payload file: words of 32 bits as "0xaaaaaaaa,0xbbbbbbbb", each little-endian. Throws usage_error naming
/// `file` and the word.
std::vector<std::uint8_t> parse_payload(const std::string& content, const std::string& file);
/// Of a file of up to 1 MiB.
std::vector<std::uint8_t> read_payload(const std::string& file);

}  // namespace gdrperf::app
