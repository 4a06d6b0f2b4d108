#include "app/options/paths.h"

#include "gdrperf/base/error.h"
#include "gdrperf/engine/resolve.h"
#include "gdrperf/mem/kind.h"

namespace gdrperf::app {
namespace {

bool possible(const TestSpec& spec) {
  try {
    engine::resolve(spec);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// A test that polls for the last byte is strict, whatever is asked for.
std::vector<Ordering> orderings_of(TestSpec spec) {
  spec.ordering = Ordering::kRelaxed;
  if (!possible(spec)) return {Ordering::kAuto};
  return {Ordering::kRelaxed, Ordering::kStrict};
}

/// Other tests than write_lat, and host memory, have the CPU alone, or with --initiator all a kernel that posts.
std::vector<Initiator> initiators_of(TestSpec spec, const ClientOptions& options) {
  const bool all = options.asks_every_more<&TestSpec::initiator>();
  if (!all && !options.asks_every<&TestSpec::initiator>()) return {spec.initiator};
  std::vector<Initiator> found;
  for (const Initiator each : {Initiator::kGpu, Initiator::kGpuProxy}) {
    spec.initiator = each;
    if ((all || each == Initiator::kGpuProxy) && possible(spec)) found.push_back(each);
  }
  found.push_back(Initiator::kCpu);
  return found;
}

/// The shape of a kernel says nothing of runs without one.
void leave_kernel(TestSpec& spec) {
  const TestSpec defaults;
  if (spec.initiator == Initiator::kGpu) return;
  spec.gpu_threads = defaults.gpu_threads;
  spec.gpu_blocks = defaults.gpu_blocks;
  spec.gpu_scope = defaults.gpu_scope;
}

}  // namespace

bool uses_gpu(const std::string& buffer) {
  try {
    return mem::on_gpu(mem::parse_kind(buffer, "--buffer"));
  } catch (const Error&) {
    return false;  // refused where it is used
  }
}

std::vector<Path> ways(const TestSpec& spec, const std::vector<Path>& wanted) {
  const bool gpu = mem::on_gpu(mem::parse_kind(spec.client.buffer, "--buffers")) ||
                   mem::on_gpu(mem::parse_kind(spec.server.buffer, "--peer-buffer"));
  return gpu ? wanted : std::vector<Path>{Path::kDirect};
}

std::vector<TestSpec> variants(const TestSpec& spec, const std::vector<Path>& paths, const ClientOptions& options) {
  std::vector<TestSpec> all;
  for (const Path path : paths) {
    TestSpec each = spec;
    each.path = path;
    const std::vector<Ordering> orderings =
        options.asks_every<&TestSpec::ordering>() ? orderings_of(each) : std::vector{each.ordering};
    for (const Ordering ordering : orderings) {
      each.ordering = ordering;
      const std::vector<Initiator> initiators = initiators_of(each, options);
      for (const Initiator initiator : initiators) {
        TestSpec one = each;
        one.initiator = initiator;
        if (initiators.size() > 1) leave_kernel(one);
        validate(one);
        all.push_back(one);
      }
    }
  }
  return all;
}

}  // namespace gdrperf::app
