#include "gdrperf/proto/perftest_peer.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace gdrperf::proto {
namespace {

constexpr std::size_t kVersionBytes = 16;

bool is_decimal(std::string_view text) { return !text.empty() && text.find_first_not_of("0123456789") == text.npos; }

/// Fields of fixed width, hexadecimal, with a colon behind each.
bool is_perftest_address(std::string_view first_bytes) {
  constexpr std::array<std::size_t, 3> kWidths = {4, 4, 6};  // LID, outstanding reads, QPN
  for (const std::size_t width : kWidths) {
    if (first_bytes.size() <= width || first_bytes[width] != ':') return false;
    if (first_bytes.substr(0, width).find_first_not_of("0123456789abcdef") != first_bytes.npos) return false;
    first_bytes.remove_prefix(width + 1);
  }
  return true;
}

}  // namespace

std::string_view perftest_version(std::string_view first_bytes) {
  const std::string_view text = first_bytes.substr(0, std::min(first_bytes.find('\0'), kVersionBytes));
  const std::size_t point = text.find('.');
  const bool sound = point != text.npos && is_decimal(text.substr(0, point)) && is_decimal(text.substr(point + 1));
  return sound && text.size() < kVersionBytes ? text : std::string_view();
}

std::string_view known_service(std::string_view first_bytes) {
  if (first_bytes.starts_with("SSH-")) return "an SSH server";
  return first_bytes.starts_with("HTTP") ? "an HTTP server" : "";
}

std::string wrong_port_hint() {
  return "give the port that 'gdrperf serve' listens on, with --port or as HOST:PORT";
}

std::optional<Error> perftest_peer(const std::string& peer, std::string_view first_bytes) {
  const std::string_view version = perftest_version(first_bytes);
  if (version.empty() && !is_perftest_address(first_bytes)) return std::nullopt;
  const std::string who = version.empty() ? "perftest" : fmt::format("perftest {}", version);
  if (peer.starts_with("client")) {
    return peer_error(
        fmt::format("{}: it is {}, which does not name its test; start the server of that test instead, like "
                    "'gdrperf ib_write_bw', or 'gdrperf ib_write_bw HOST' on that host",
                    peer, who));
  }
  return peer_error(
      fmt::format("{}: {} listens there, not 'gdrperf serve'", peer, who),
      "start 'gdrperf serve' there instead, or use 'gdrperf ib_write_bw HOST' (or another perftest name), which works "
      "with perftest, one message size per run");
}

}  // namespace gdrperf::proto
