#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gdrperf/base/run_program.h"
#include "gdrperf/verbs/inventory.h"

namespace gdrperf::doctor {

/// Access of this process to a path.
enum class Access { kMissing, kDenied, kGranted };

struct FileText {
  Access access = Access::kMissing;  ///< kDenied also when reading it fails
  std::string text;                  ///< at most 4 MiB of it
};

/// A limit in bytes; nullopt: unlimited.
struct MemlockLimit {
  std::optional<std::uint64_t> soft_bytes;
  std::optional<std::uint64_t> hard_bytes;
};

/// All that the checks may look at: this machine, a made-up or a recorded one.
/// Nothing here throws for what is missing, and nothing changes the machine.
class Machine {
 public:
  virtual ~Machine() = default;

  virtual FileText read(const std::string& path) const = 0;
  /// Names in a folder, sorted; empty when there is no such folder.
  virtual std::vector<std::string> list(const std::string& path) const = 0;
  /// The path with every symbolic link followed; "" when it leads nowhere.
  virtual std::string resolve(const std::string& path) const = 0;
  /// Whether this user may open it for reading and writing.
  virtual Access read_write(const std::string& path) const = 0;
  /// Runs a program of the PATH (argv[0]) without a shell and waits for it for
  /// a few seconds at most.
  virtual ProgramResult run(const std::vector<std::string>& argv) const = 0;
  virtual MemlockLimit memlock() const = 0;
  /// libibverbs' view, software devices included; nothing where that is
  /// not known: no libibverbs, or a recording without it.
  virtual std::optional<std::vector<verbs::DeviceInfo>> rdma_devices() const = 0;
  /// Why libibverbs cannot be used here; "" when it can.
  virtual std::string libibverbs_error() const { return {}; }
  /// A recording, not the machine this runs on.
  virtual bool recorded() const { return false; }
  /// Gaps and errors of a recording; one sentence each.
  virtual std::vector<std::string> damage() const { return {}; }
};

/// Stands for this program's probe of GPU memory in Machine::run(): it prints
/// what GPUs and NICs answer when asked for GPUDirect RDMA (docs/how-to/doctor.md).
inline constexpr const char* kGpuProbe = "gdr-probe";

/// This machine, as this user sees it. `own_program` answers kGpuProbe (""; it
/// is then not installed). run() may be called from several threads.
std::unique_ptr<Machine> this_machine(std::string own_program = {});

/// `machine` with the outputs of the programs that checks will ask for, run at
/// the same time, each once and for two seconds at most. Borrows `machine`.
std::unique_ptr<Machine> asked_ahead(const Machine& machine);
/// The same with these programs: name and arguments of each.
std::unique_ptr<Machine> asked_ahead(const Machine& machine, const std::vector<std::vector<std::string>>& wanted);

/// A recorded machine: a folder, a tar file (gzip or not) or a text file, as in
/// docs/how-to/doctor.md. What is wrong inside is its damage(). Throws usage_error for
/// a path that is none of these.
std::unique_ptr<Machine> recorded_machine(const std::string& path);

enum class Masking { kOn, kOff };  ///< MACs, serial numbers, addresses

/// Examines `machine` and writes all that was looked at into a gzipped tar
/// file. Throws Error(kEnvironment) when that cannot be written.
void record(const Machine& machine, const std::string& path, Masking masking);

}  // namespace gdrperf::doctor
