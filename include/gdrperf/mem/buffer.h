#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "gdrperf/mem/copier.h"
#include "gdrperf/mem/pattern.h"
#include "gdrperf/mem/relay.h"
#include "gdrperf/proto/gpu.h"
#include "gdrperf/proto/spec.h"
#include "gdrperf/verbs/resources.h"

namespace gdrperf::mem {

/// Memory that messages leave from or arrive in. Owned by the run that asked
/// for it; outlives its registrations (declare the buffer before the MR). One
/// thread at a time.
class Buffer {
 public:
  virtual ~Buffer() = default;

  virtual std::byte* data() = 0;
  virtual std::size_t size() const = 0;
  /// As the record names it: "host", "cuda:0".
  virtual const std::string& kind() const = 0;
  /// May the CPU read and write `data()`? (False for GPU memory.)
  virtual bool cpu_reachable() const = 0;
  /// Throws Error(kEnvironment) with the way out where registration is refused.
  virtual verbs::Mr register_with(ibv_pd* pd, int access) = 0;
  /// How it was registered last: "host", "dmabuf", "peermem"; "" before.
  virtual const std::string& registration() const = 0;

  /// Writes the messages of `run` and waits until they are there.
  virtual void fill(const PatternRun& run) = 0;
  /// Compares them with what lies there, after the completions of what is to be
  /// compared have been seen.
  virtual CheckResult check(const PatternRun& run) = 0;
  /// Engine that fills and compares: "cpu", "gpu", or "copy" (the CPU, on a copy).
  virtual const std::string& checker() const = 0;

  /// Frees the memory, or does nothing, while it is registered still: no message comes any
  /// more, and nobody wants what is in it. Only destruction may follow.
  virtual void let_go() noexcept {}

  /// Null: not in a GPU.
  virtual const GpuInfo* gpu() const { return nullptr; }
  /// A relay in this GPU memory (usage: RelayRun); throws Error(kEnvironment) where this build has no kernels.
  /// Null where the data is not in a GPU.
  virtual std::unique_ptr<Relay> make_relay(const RelayRun&) { return nullptr; }
  /// A queue of copies between this GPU memory and pinned host memory; null
  /// where the data is not in a GPU.
  virtual std::unique_ptr<Copier> make_copier() { return nullptr; }
};

/// Throws usage_error, naming `flag`, when `kind` is none that there is, and
/// Error(kEnvironment) when this build or this machine has no such memory.
/// Allocates nothing.
void check_kind(const std::string& kind, const std::string& flag);

/// Kinds of memory that this machine has, "host" first; of each GPU its
/// "cuda:N", of the first one the others too.
std::vector<std::string> buffers_at_hand();
/// "cuda:all" among `kinds` as the GPUs there are: "cuda:0", "cuda:1", ...
std::vector<std::string> expand_kinds(const std::vector<std::string>& kinds, const char* flag);

/// Zeroed, page-aligned memory of one kind, `bytes` > 0. Host memory is touched
/// by the calling thread so that it lies on that thread's NUMA node. "staged:N"
/// is GPU memory of which nothing is registered.
std::unique_ptr<Buffer> make_buffer(const std::string& kind, std::size_t bytes,
                                    Registration registration = Registration::kAuto);

/// Host memory for staging: pinned for `kind`'s GPU, plain where `kind` is none.
std::unique_ptr<Buffer> make_bounce_buffer(const std::string& kind, std::size_t bytes);

}  // namespace gdrperf::mem
