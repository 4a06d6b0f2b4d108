#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gdrperf/verbs/device.h"
#include "gdrperf/verbs/gid.h"

// What it costs to be connected: QPs one after another, and connections of rdma_cm with their first messages. Times are
// in ns.
namespace gdrperf::conn {

/// One QP, connected to itself.
struct QpCost {
  double create_ns = 0;
  double init_ns = 0;  ///< RESET to INIT
  double rts_ns = 0;   ///< INIT to RTS
  double destroy_ns = 0;
};
/// Makes `count` RC QPs on one CQ, all of which exist at the same time, then destroys them. Throws Error.
std::vector<QpCost> measure_qps(const verbs::Context& device, const verbs::PortInfo& port, const verbs::Gid& gid,
                                std::size_t count);

/// One connection by rdma_cm, and the first two messages (8 bytes, from ibv_post_send to the completion) over it.
struct ConnectCost {
  double address_ns = 0;  ///< rdma_resolve_addr
  double route_ns = 0;    ///< rdma_resolve_route
  double qp_ns = 0;       ///< rdma_create_qp
  double connect_ns = 0;  ///< rdma_connect to ESTABLISHED
  double first_ns = 0;
  double second_ns = 0;
  double disconnect_ns = 0;  ///< rdma_disconnect to DISCONNECTED
  double total_ns = 0;       ///< from rdma_create_id to ESTABLISHED
};

/// Answers connections, one client after another; one thread.
class ConnectServer {
 public:
  /// Listens on the address of `gid`; port 0: any. Throws Error.
  ConnectServer(const verbs::Context& device, const verbs::Gid& gid, int port);
  ~ConnectServer();
  ConnectServer(const ConnectServer&) = delete;
  ConnectServer& operator=(const ConnectServer&) = delete;

  int port() const;
  /// Serves until a client has had all the connections that it announced. Throws Error.
  void serve();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Makes `count` connections, one after another, from the address of `gid` to a ConnectServer. Throws Error.
std::vector<ConnectCost> measure_connections(const verbs::Context& device, const verbs::Gid& gid,
                                             const std::string& host, int port, std::size_t count);

}  // namespace gdrperf::conn
