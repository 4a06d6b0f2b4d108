#include <fmt/format.h>

#include "paths/ways.h"
#include "remote/secret.h"

/// Peers on other hosts: whole requests go over TCP (transport/tcp_stream.h), so
/// none of them comes this way.
namespace gdrperf::softnic {
namespace {

class TcpWay final : public Way {
 public:
  const char* name() const noexcept override { return "tcp"; }
  std::string words() const override { return "other hosts and network namespaces: requests travel whole"; }
  std::optional<std::string> obstacle(const Device& device) const override {
    if (device.config.tcp_port == 0) return "tcp=off";
    std::string why;
    return secret_of(device.config, why).empty() ? fmt::format("no token= is given, and {}", why) : std::string();
  }
  std::optional<ibv_wc_status> put(const Target&, const MrShared&, std::uint64_t,
                                   const Pieces&) const noexcept override {
    return std::nullopt;
  }
  std::optional<ibv_wc_status> get(const Target&, const MrShared&, std::uint64_t,
                                   const Pieces&) const noexcept override {
    return std::nullopt;
  }
};

}  // namespace

const Way& tcp_way() noexcept {
  static const TcpWay way;
  return way;
}

}  // namespace gdrperf::softnic
