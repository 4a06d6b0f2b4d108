#include "app/test/payload.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "app/options/options.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/printable.h"

namespace gdrperf::app {

std::vector<std::uint8_t> parse_payload(const std::string& content, const std::string& file) {
  constexpr const char* kBetween = ", \t\r\n";
  std::vector<std::uint8_t> bytes;
  std::size_t at = 0;
  while ((at = content.find_first_not_of(kBetween, at)) != std::string::npos) {
    const std::size_t end = std::min(content.find_first_of(kBetween, at), content.size());
    const std::string word = content.substr(at, end - at);
    std::uint32_t value = 0;
    const bool prefixed = word.starts_with("0x") || word.starts_with("0X");
    const char* const first = word.data() + (prefixed ? 2 : 0);
    const auto [rest, error] = std::from_chars(first, word.data() + word.size(), value, 16);
    if (!prefixed || error != std::errc() || rest != word.data() + word.size()) {
      throw usage_error(fmt::format("--payload {}: word {}, '{}', is not 32 bits as 0x12345678", file,
                                    bytes.size() / 4 + 1, printable(word.substr(0, 20))),
                        "give words like 0xaaaaaaaa,0xbbbbbbbb");
    }
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::uint8_t>(value >> shift));
    at = end;
  }
  if (bytes.empty()) {
    throw usage_error(fmt::format("--payload {}: there are no words in it", file),
                      "give words like 0xaaaaaaaa,0xbbbbbbbb");
  }
  return bytes;
}

std::vector<std::uint8_t> read_payload(const std::string& file) {
  constexpr std::size_t kMostBytes = 1u << 20;
  return parse_payload(of_option("--payload", [&file] { return read_file(file, kMostBytes); }), file);
}

}  // namespace gdrperf::app
