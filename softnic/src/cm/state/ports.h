#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "cm/state/events.h"
#include "cm/state/id.h"
#include "cm/links/loop.h"
#include "gdrperf/base/unique_fd.h"

namespace gdrperf::softnic {

/// Addresses and ports of ids: binding, resolving, listening. Callers exclude each
/// other. What programs ask for returns 0 or a negative errno.
class CmPorts {
 public:
  /// `accepted` gets, in the loop's thread, each process that connects to a port of
  /// this one.
  CmPorts(CmLoop& loop, std::function<void(UniqueFd)> accepted) : loop_(loop), accepted_(std::move(accepted)) {}

  int bind(CmId& id, const CmAddress& address);
  int resolve_address(CmId& id, const std::optional<CmAddress>& source, const CmAddress& destination);
  int resolve_route(CmId& id);
  int listen(CmId& id, std::uint32_t backlog);
  void release(CmId& id);

 private:
  int take(CmId& id, UniqueFd claim);
  /// Lets in whoever connects to the port. Thread-safe.
  void open(const std::shared_ptr<CmClaim>& claim);

  /// Time that a peer waits at most that connects between a program's bind and its listen, and
  /// is refused then: some programs tell their port before they listen.
  static constexpr std::chrono::milliseconds kUntilListen{3000};
  static constexpr std::uint32_t kMaxBacklog = 1024;
  CmLoop& loop_;
  std::function<void(UniqueFd)> accepted_;
};

}  // namespace gdrperf::softnic
