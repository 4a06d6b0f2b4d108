#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/base/outside.h"
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

/// Result of one check on one subject. No field holds a line break.
struct Finding {
  Verdict verdict = Verdict::kSkip;
  std::string check;    ///< stable name: "memlock", "port-state", ...
  std::string subject;  ///< "mlx5_0/1", "0000:3b:00.0"; "": the machine
  std::string found;
  std::string why;       ///< why it matters
  std::string fix;       ///< what to type (or do); "" with kOk
  std::string for_good;  ///< the same so that it outlives a reboot; "": `fix` does
  std::string undo;      ///< what takes `fix` back; "": nothing to take back
  std::string holds;     ///< where the commands of `fix` hold, and whether they outlive a reboot
  /// Observation with its source: "/proc/cmdline: ... iommu=on", "lspci: ACSCtl ...".
  std::vector<std::string> evidence;
};

struct Words;

struct Settings {
  std::string softnic_library;    ///< path of the software device's library, "" when not found
  std::vector<std::string> only;  ///< checks to run; empty: all
  const Words* words = nullptr;   ///< messages that are known (doctor/words.h); nullptr: the program's own
};

/// A check as `gdrperf doctor --list` and docs/how-to/doctor.md show it.
struct CheckInfo {
  std::string id;
  std::string group;  ///< "RDMA device", "Host", ...
  std::string looks_at;
  std::string bad_when;  ///< when it says WARN or FAIL
};

/// All checks, in the order to work them through.
std::vector<CheckInfo> checks();
/// The group of a check; "Messages" for those that only captured text has.
std::string group_of(const std::string& check);

/// One GPU and one NIC: may data go straight between them, and how fast?
struct PairVerdict {
  Outside gpu;           ///< "GPU0"
  Outside nic;           ///< "mlx5_0"
  std::string relation;  ///< "PIX", ..., "": not known
  bool ready = false;
  double expected_gbytes = 0;  ///< topo::pair_ceiling() in GB/s, whether or not the path is ready; 0: not known
  std::string words;           ///< "direct path ready, expect 24 GB/s", "no direct path: peermem"
};

struct Examination {
  std::vector<Finding> findings;
  std::vector<PairVerdict> pairs;
  bool nothing_here = false;  ///< neither an RDMA device, nor an adapter, nor a GPU
  bool sys_hidden = false;    ///< there is no /sys: which devices there are is not known
};

/// The checks on `machine`, in the order to work them through: the RDMA
/// device, its ports, PCIe, GPUDirect RDMA, then the host. Throws nothing but
/// std::bad_alloc.
Examination examine(const Machine& machine, const Settings& settings);

/// Captured text: where it came from and what it holds.
struct Capture {
  std::string name;  ///< of the file; "-"
  std::string text;
};

/// Findings from captured text, from another machine maybe: outputs of programs
/// (lspci -vvv, lsmod, dmesg, ibstat, nvidia-smi, ...) and messages of NCCL,
/// UCX and perftest; several in one text are fine. Several captures are
/// compared, too. One SKIP "capture" for each that holds nothing known.
std::vector<Finding> read_captures(const std::vector<Capture>& captures);
std::vector<Finding> read_captures(const std::vector<Capture>& captures, const Words& words);
std::vector<Finding> read_capture(std::string_view text);

/// One commented script of the cures in `findings`; each step asks first.
std::string fix_script(const std::vector<Finding>& findings);

}  // namespace gdrperf::doctor
