#pragma once

#include <list>
#include <string>
#include <vector>

#include "gdrperf/base/mutex.h"
#include "gdrperf/base/unique_fd.h"
#include "host/process/local.h"
#include "model/link.h"

namespace gdrperf::softnic {

/// The modelled ports that this process uses: shared memory, one memfd per
/// device name and settings (SOFTNIC), with no file behind it. Whoever comes first owns the abstract
/// socket of that name (names.h) and hands the memfd out to processes of its user; when the owner dies one of the
/// others takes the name over. Thread-safe.
class Ports {
 public:
  explicit Ports(DescriptorWatch& watch) : watch_(watch) {}

  /// The port that Device::port_name calls `name`, at an address that stays. Blocks up
  /// to two seconds; a port that nobody shares when its owner does not answer.
  PortShared& get(const std::string& name);

  /// Control thread: true when `fd` is one of these.
  bool handle(int fd);
  /// In a forked child: closes what was inherited.
  void abandon();

 private:
  struct Port {
    std::string name;
    PortShared* shared = nullptr;
    UniqueFd memory;
    UniqueFd listener;              ///< this process owns the name
    std::vector<UniqueFd> clients;  ///< the owner's
    UniqueFd owner;                 ///< the socket to the owner
  };
  void join(Port& port);
  bool found(Port& port);
  void take_over(Port& port);
  void accept_client(Port& port);
  void map(Port& port, UniqueFd memory);

  DescriptorWatch& watch_;
  Mutex opening_;
  Mutex mutex_;
  std::list<Port> ports_;
};

}  // namespace gdrperf::softnic
