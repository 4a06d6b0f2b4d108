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

/// Other tests than write_lat, and host memory, have the CPU alone.
std::vector<Initiator> initiators_of(TestSpec spec) {
  spec.initiator = Initiator::kGpuProxy;
  if (!possible(spec)) return {Initiator::kCpu};
  return {Initiator::kGpuProxy, Initiator::kCpu};
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
    const std::vector<Ordering> orderings = options.asks_every<&TestSpec::ordering>() ? orderings_of(each) : std::vector{each.ordering};
    for (const Ordering ordering : orderings) {
      each.ordering = ordering;
      const std::vector<Initiator> initiators = options.asks_every<&TestSpec::initiator>() ? initiators_of(each) : std::vector{each.initiator};
      for (const Initiator initiator : initiators) {
        each.initiator = initiator;
        validate(each);
        all.push_back(each);
      }
    }
  }
  return all;
}

}  // namespace gdrperf::app
