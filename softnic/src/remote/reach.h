#pragma once

#include <cstdint>
#include <string>

#include "device/config.h"
#include "gdrperf/base/unique_fd.h"
#include "remote/greeting.h"

/// From a device to a process on another host.
namespace gdrperf::softnic {

struct TcpPatience {
  int connect_ms;   ///< for each try
  int nobody_ms;    ///< tries go on so long while nobody answers, or no process is the one
};

struct TcpReached {
  UniqueFd socket;      ///< empty: not reached
  TcpRefusal refusal = TcpRefusal::kNone;
  bool answered = false;  ///< somebody has the port there
  std::string why;        ///< in words
};

/// Blocks. Says nothing.
TcpReached reach_over_tcp(const TcpRoute& route, const DeviceConfig& device, const TcpPatience& patience);
/// On stderr, each text once: a program may try often.
void say_once(const std::string& text);
/// Says on stderr why the peer of that route was not reached, once for each text.
void say_not_reached(const TcpRoute& route, const TcpReached& reached);

}  // namespace gdrperf::softnic
