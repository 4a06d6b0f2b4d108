#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "gdrperf/mem/pattern.h"
#include "gdrperf/verbs/resources.h"

namespace gdrperf::mem {

/// Memory that messages leave from or arrive in. Owned by the run that asked
/// for it; outlives its registrations (declare the buffer before the MR).
class Buffer {
 public:
  virtual ~Buffer() = default;

  virtual std::byte* data() = 0;
  virtual std::size_t size() const = 0;
  /// As the record names it: "host".
  virtual const std::string& kind() const = 0;
  /// May the CPU read and write `data()`? (False for GPU memory.)
  virtual bool cpu_reachable() const = 0;
  /// Throws Error(kEnvironment) with the way out where registration is refused.
  virtual verbs::Mr register_with(ibv_pd* pd, int access) = 0;

  /// Writes the messages of `run` and waits until they are there.
  virtual void fill(const PatternRun& run) = 0;
  /// Compares them with what lies there, after the completions of what is to be
  /// compared have been seen.
  virtual CheckResult check(const PatternRun& run) = 0;
};

/// Throws usage_error, naming `flag`, when `kind` is none that this build
/// knows. Cheap: allocates nothing.
void check_kind(const std::string& kind, const char* flag);

/// Kinds of memory that this machine has, "host" first.
std::vector<std::string> buffers_at_hand();

/// Zeroed, page-aligned memory of one kind, `bytes` > 0, touched by the calling
/// thread so that it lies on that thread's NUMA node.
std::unique_ptr<Buffer> make_buffer(const std::string& kind, std::size_t bytes);

}  // namespace gdrperf::mem
