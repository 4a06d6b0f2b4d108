#include "gdrperf/engine/registration_cost.h"

#include <memory>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/mem/buffer.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/verbs/resources.h"

namespace gdrperf::engine {
namespace {

using std::chrono::steady_clock;

double ns_between(steady_clock::time_point begin, steady_clock::time_point end) {
  return std::chrono::duration<double, std::nano>(end - begin).count();
}

}  // namespace

RegistrationCost measure_registration(const verbs::Context& device, const RegistrationRun& run) {
  int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_RELAXED_ORDERING;
  if (run.odp) {
    const std::string asked = flag<&TestSpec::odp>();
    if ((device.attr().odp_caps.general_caps & IBV_ODP_SUPPORT) == 0) {
      throw Error(ExitCode::kEnvironment,
                  fmt::format("{}: {} has no on-demand paging (odp_caps of ibv_devinfo -v)", asked, device.name()),
                  fmt::format("leave {} out", asked));
    }
    access |= IBV_ACCESS_ON_DEMAND;
  }
  const verbs::Pd pd = verbs::make_pd(device.get());
  const std::unique_ptr<mem::Buffer> buffer = mem::make_buffer(run.buffer, run.bytes, run.how);
  if (run.odp && !buffer->cpu_reachable())
    throw Error(ExitCode::kEnvironment, fmt::format("{}: GPU memory is never paged", flag<&TestSpec::odp>()));
  std::vector<double> registered;
  std::vector<double> released;
  // The first one also makes what the provider keeps.
  buffer->register_with(pd.get(), access);
  const auto end = steady_clock::now() + run.time;
  for (auto now = steady_clock::now(); now < end || registered.size() < kLeastRegistrations;) {
    verbs::Mr mr = buffer->register_with(pd.get(), access);
    const auto done = steady_clock::now();
    registered.push_back(ns_between(now, done));
    mr.reset();
    now = steady_clock::now();
    released.push_back(ns_between(done, now));
  }
  return {buffer->registration(), registered.size(), stats::summarize(registered), stats::summarize(released)};
}

}  // namespace gdrperf::engine
