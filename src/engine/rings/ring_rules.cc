#include "engine/rings/ring_rules.h"

#include <fmt/format.h>

#include "gdrperf/base/error.h"

namespace gdrperf::engine {
namespace {

bool asks_kernel(const TestSpec& spec) {
  return spec.gpu_threads != 1 || spec.gpu_blocks != 1 || spec.gpu_scope != GpuScope::kThread;
}

/// Some of them: the option, and why rings are not for it.
struct NotForRings {
  bool asked;
  std::string flag;
  const char* why;
};

void check_scope(const ResolvedSpec& spec) {
  if (spec.gpu_scope != GpuScope::kWarp || spec.gpu_threads % 32 == 0) return;
  throw usage_error(fmt::format("{} warp: {} {} is no multiple of 32, the threads of a warp",
                                flag<&TestSpec::gpu_scope>(), flag<&TestSpec::gpu_threads>(), spec.gpu_threads),
                    fmt::format("give {} 32", flag<&TestSpec::gpu_threads>()));
}

}  // namespace

void check_rings(const ResolvedSpec& spec) {
  const std::string initiator = flag<&TestSpec::initiator>();
  if (spec.initiator != Initiator::kGpu && asks_kernel(spec)) {
    const std::string asked = spec.gpu_threads != 1  ? flag<&TestSpec::gpu_threads>()
                              : spec.gpu_blocks != 1 ? flag<&TestSpec::gpu_blocks>()
                                                     : flag<&TestSpec::gpu_scope>();
    throw usage_error(fmt::format("{}: no kernel posts messages", asked),
                      fmt::format("give {} gpu as well", initiator));
  }
  if (spec.initiator != Initiator::kGpu && spec.initiator != Initiator::kCpuRings) return;
  const bool kernel = spec.initiator == Initiator::kGpu;
  const std::string asked = initiator + (kernel ? " gpu" : " cpu-rings");
  if (!spec.posts_to_rings(conn::Side::kClient) && !spec.posts_to_rings(conn::Side::kServer)) {
    const std::string own = flag<&TestSpec::client, &EndSpec::buffer>();
    throw usage_error(fmt::format("{}: the memory that messages leave from, or answers come to, is {}", asked,
                                  kernel ? "not in a GPU of NVIDIA's" : "not in the host"),
                      kernel ? own + " cuda:N, or cuda-host" : own + " host");
  }
  for (const conn::Side side : {conn::Side::kClient, conn::Side::kServer}) {
    if (!mem::of_other_maker(spec.kind(side))) continue;
    throw usage_error(asked + ": kernels run on NVIDIA's GPUs alone", "leave it out: the CPU posts");
  }
  const NotForRings others[] = {
      {spec.consume || spec.staged(conn::Side::kClient) || spec.staged(conn::Side::kServer),
       spec.consume ? flag<&TestSpec::consume>() : flag<&TestSpec::path>() + " staged",
       "chunks are copied and posted by the CPU"},
      {spec.transport != Transport::kRc, flag<&TestSpec::transport>(), "the threads write requests of RC"},
      {spec.connector == Connector::kRdmaCm, flag<&TestSpec::connector>(),
       "each QP has a completion queue of its own, which rdma_cm does not give it"},
      {spec.wait == Wait::kEvent, flag<&TestSpec::wait>(), "nobody is woken: the threads poll"},
      {rate_of(spec) > 0, flag<&TestSpec::rate_per_s>(), "the threads post as fast as messages complete"},
      {spec.latency_gap.count() > 0, flag<&TestSpec::latency_gap>(), "the threads do not pause"},
      {!spec.load.empty(), flag<&TestSpec::load>(), "the kernel has the GPU to itself"},
      {spec.sges > 1, flag<&TestSpec::sges>(), "the threads write requests of one piece"},
      {!spec.mix.empty(), flag<&TestSpec::mix>(), "the threads write messages of one size"},
      {spec.random_places, flag<&TestSpec::random_places>(), "the threads take the slots in order"},
      {spec.inline_bytes > 0, flag<&TestSpec::inline_bytes>(), "the threads do not send inline"},
      {spec.srq, flag<&TestSpec::srq>(), "receives belong to one QP"},
      {spec.parts > 1 || spec.threads > 1 || !spec.rails.empty() || spec.incast > 1,
       !spec.rails.empty() ? flag<&TestSpec::rails>()
       : spec.incast > 1   ? flag<&TestSpec::incast>()
                           : flag<&TestSpec::threads>(),
       "runs at the same time have the CPU post"},
  };
  for (const NotForRings& each : others) {
    if (each.asked)
      throw usage_error(fmt::format("{} and {}: {}", asked, each.flag, each.why), "leave one of them out");
  }
  check_scope(spec);
}

}  // namespace gdrperf::engine
