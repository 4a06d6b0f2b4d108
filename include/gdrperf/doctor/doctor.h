#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/doctor/machine.h"

namespace gdrperf::doctor {

enum class Verdict {
  kOk,
  kWarn,  ///< works, but slower or for less than it could
  kFail,  ///< keeps RDMA, or GPUDirect RDMA where there is a GPU, from working
  kSkip,  ///< does not apply here, or could not be looked at; `found` says why
};

/// "OK", "WARN", "FAIL" or "SKIP".
const char* to_string(Verdict verdict);

/// What one check says about one thing. No field holds a line break.
struct Finding {
  Verdict verdict = Verdict::kSkip;
  std::string check;    ///< stable name: "memlock", "port-state", ...
  std::string subject;  ///< "mlx5_0/1", "0000:3b:00.0"; "": the machine
  std::string found;
  std::string why;  ///< why it matters
  std::string fix;  ///< what to type (or do); "" with kOk
};

struct Settings {
  std::string softnic_library;  ///< path of the software device's library, "" when not found
};

/// Every check on `machine`, in the order to work them through: the RDMA
/// device, its ports, the host, then GPU and GPUDirect RDMA. Throws nothing
/// but std::bad_alloc.
std::vector<Finding> examine(const Machine& machine, const Settings& settings);

/// What captured text says, from another machine maybe: the output of lspci
/// -vvv, lsmod, dmesg or modprobe (peer memory), ethtool -i, show_gids,
/// ibdev2netdev, ibv_devinfo, and messages about locked memory of UCX and
/// perftest; several of them in one text are fine. One SKIP when it holds none.
std::vector<Finding> read_capture(std::string_view text);

}  // namespace gdrperf::doctor
