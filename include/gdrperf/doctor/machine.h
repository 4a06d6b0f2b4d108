#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gdrperf/base/run_program.h"
#include "gdrperf/verbs/inventory.h"

namespace gdrperf::doctor {

/// What this process may do with a path.
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
  /// What libibverbs shows, software devices included.
  virtual std::vector<verbs::DeviceInfo> rdma_devices() const = 0;
};

/// This machine, as this user sees it. One thread at a time.
std::unique_ptr<Machine> this_machine();

}  // namespace gdrperf::doctor
