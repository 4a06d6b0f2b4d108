#include "engine/setup/demand.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/base/units.h"
#include "gdrperf/engine/memory_demand.h"
#include "engine/setup/op_traits.h"
#include "gdrperf/engine/resolve.h"
#include "gdrperf/mem/available.h"
#include "gdrperf/mem/kind.h"
#include "gdrperf/proto/settings.h"
#include "engine/transfer/data_path.h"

namespace gdrperf::engine {
namespace {

using conn::Side;

constexpr std::uint64_t kPage = 4096;
// Of what a device keeps, about what mlx5 takes: a send queue's entry with its
// scatter list, a receive queue's, a completion.
constexpr std::uint64_t kSendEntryBytes = 256;
constexpr std::uint64_t kRecvEntryBytes = 64;
constexpr std::uint64_t kCompletionBytes = 64;
constexpr std::uint64_t kQpBytes = 4 * kPage;
constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

std::uint64_t times(std::uint64_t a, std::uint64_t b) { return b != 0 && a > kMost / b ? kMost : a * b; }
std::uint64_t plus(std::uint64_t a, std::uint64_t b) { return a > kMost - b ? kMost : a + b; }

/// 0 for "max_bytes" stands for a quarter of it; no limit where it is not known.
std::uint64_t budget(std::uint64_t max_bytes, std::uint64_t available) {
  if (max_bytes != 0) return max_bytes;
  return available == 0 ? kMost : available / 4;
}

}  // namespace

std::string about(std::uint64_t bytes) {
  return about_size(bytes);
}

std::uint64_t area_bytes(const ResolvedSpec& spec) {
  const std::uint64_t bytes = times(spec.layout().qp_bytes(), static_cast<std::uint64_t>(spec.qps));
  return plus(bytes, kPage - 1) / kPage * kPage;
}

std::uint64_t Demand::host_bytes() const {
  return plus(plus(staging_bytes, queues_bytes), messages_on_gpu ? 0 : messages_bytes);
}

Demand demand_of(const ResolvedSpec& spec, Side side) {
  Demand demand;
  static_cast<QueueDemand&>(demand) = queues_of(spec, side);
  const auto qps = static_cast<std::uint64_t>(spec.qps);
  demand.messages_bytes = times(area_bytes(spec), spec.initiates(side) && spec.is_target(side) ? 2 : 1);
  demand.messages_on_gpu = mem::on_gpu(spec.kind(side));
  demand.qps = spec.qps;
  if (spec.staged(side)) demand.staging_bytes = times(2, spec.wire().bytes());
  const std::uint64_t per_qp = kQpBytes + demand.requests_bytes +
                               static_cast<std::uint64_t>(demand.send_wr) * kSendEntryBytes +
                               static_cast<std::uint64_t>(demand.recv_wr) * kRecvEntryBytes;
  const std::uint64_t completions =
      static_cast<std::uint64_t>(demand.send_entries) + static_cast<std::uint64_t>(demand.recv_entries);
  const std::uint64_t all_qps = qps * static_cast<std::uint64_t>(demand.qps_per_pair);
  demand.queues_bytes = plus(times(all_qps, per_qp), completions * kCompletionBytes);
  return demand;
}

MemoryDemand memory_of(const TestSpec& spec, Side side) {
  const Demand demand = demand_of(resolve(spec), side);
  return {demand.host_bytes(), demand.gpu_bytes()};
}

void check_device(const Demand& demand, const ibv_device_attr& attr, const std::string& device) {
  const auto refuse = [&device](const std::string& what, long long most, const char* things) {
    throw usage_error(fmt::format("{}: {} has {} {} at most", what, device, most, things));
  };
  const std::string qps = flag<&TestSpec::qps>();
  const std::string tx_depth = flag<&TestSpec::tx_depth>();
  const std::string rx_depth = flag<&TestSpec::rx_depth>();
  if (attr.max_qp > 0 && std::int64_t{demand.qps} * demand.qps_per_pair > attr.max_qp)
    refuse(fmt::format("{} {}", qps, demand.qps), attr.max_qp, "QPs");
  if (attr.max_qp_wr > 0 && demand.send_wr > attr.max_qp_wr) {
    refuse(fmt::format("{} {}", tx_depth, demand.send_wr), attr.max_qp_wr, "requests in a queue");
  }
  if (attr.max_qp_wr > 0 && demand.recv_wr > attr.max_qp_wr) {
    refuse(fmt::format("{} {}", rx_depth, demand.recv_wr), attr.max_qp_wr, "requests in a queue");
  }
  if (demand.srq_wr > 0 && demand.srqs > attr.max_srq && demand.srqs > 1) {
    refuse(fmt::format("{} {} over XRC or DC", qps, demand.qps), attr.max_srq, "shared receive queues");
  }
  if (demand.srq_wr > 0 && attr.max_srq <= 0) {
    throw Error(ExitCode::kEnvironment,
                fmt::format("{}: {} has no shared receive queues (its max_srq is {})", flag<&TestSpec::srq>(), device,
                            attr.max_srq),
                fmt::format("leave {} out", flag<&TestSpec::srq>()));
  }
  if (demand.srq_wr > attr.max_srq_wr) {
    refuse(fmt::format("{} with {} {} and {} {}", flag<&TestSpec::srq>(), qps, demand.qps, rx_depth, demand.recv_wr),
           attr.max_srq_wr, "requests in a shared receive queue");
  }
  if (attr.max_cqe > 0 && demand.send_entries > attr.max_cqe) {
    refuse(fmt::format("{} {} with {} {}", qps, demand.qps, tx_depth, demand.send_wr), attr.max_cqe,
           "entries in a completion queue");
  }
  if (attr.max_cqe > 0 && demand.recv_entries > attr.max_cqe) {
    refuse(fmt::format("{} {} with {} {}", qps, demand.qps, rx_depth, demand.recv_wr), attr.max_cqe,
           "entries in a completion queue");
  }
  const std::uint64_t region = demand.staging_bytes != 0 ? demand.staging_bytes : demand.messages_bytes;
  if (attr.max_mr_size > 0 && region > attr.max_mr_size) {
    throw usage_error(fmt::format("{} of messages: {} registers {} at most", format_size(region), device,
                                  format_size(attr.max_mr_size)),
                      fmt::format("use a smaller {}, {} or {}", flag<&TestSpec::size_bytes>(), qps,
                                  flag<&TestSpec::footprint_bytes>()));
  }
}

void check_device(const TestSpec& spec, const Demand& demand, const verbs::Context& device) {
  check_device(demand, device.attr().orig_attr, device.name());
  if (!device.iwarp() || spec.connector == Connector::kRdmaCm) return;
  throw usage_error(fmt::format("{} speaks iWARP: rdma_cm alone connects its QPs", device.name()),
                    fmt::format("add {}", flag<&TestSpec::connector>()));
}

void check_shared_device(int qps, const ibv_device_attr& attr, const std::string& device) {
  if (attr.max_qp <= 0 || qps <= attr.max_qp / 2) return;
  const std::string name = flag<&TestSpec::qps>();
  throw usage_error(fmt::format("{} {}: with client and server in this process that is {} QPs; {} has {} at most", name,
                                qps, 2 * qps, device, attr.max_qp),
                    fmt::format("give {} {} at most, or run the server as 'gdrperf serve'", name, attr.max_qp / 2));
}

namespace {

/// Of one kind of memory, at the end that is asked.
struct Room {
  std::uint64_t max_bytes = 0;  ///< permitted by --max-memory; 0: a quarter of `available`
  std::uint64_t available = 0;
  std::uint64_t taken = 0;  ///< by other runs
};

void check_room(const Demand& demand, Side side, const Room& host, const Room& gpu) {
  const auto check = [&](std::uint64_t wanted, const Room& room, const char* kind, const std::string& parts) {
    const std::uint64_t most = budget(room.max_bytes, room.available);
    const std::uint64_t in_all = plus(wanted, room.taken);
    if (in_all <= most) return;
    const bool client = side == Side::kClient;
    throw Error(
        ExitCode::kEnvironment,
        fmt::format(
            "{} would need {} of {}memory for this run ({}), more than the {} it may take{}{}",
            client ? "this host" : "the server", about(wanted), kind, parts, about(most),
            room.max_bytes != 0 ? "" : fmt::format(": a quarter of the {} that are available", about(room.available)),
            room.taken == 0 ? "" : fmt::format("; other runs have {} of it", about(room.taken))),
        fmt::format("use a smaller {}, {}, {}, {} or {}, or permit it with {} {}M{}", flag<&TestSpec::qps>(),
                    flag<&TestSpec::size_bytes>(), flag<&TestSpec::tx_depth>(), flag<&TestSpec::rx_depth>(),
                    flag<&TestSpec::footprint_bytes>(), flags::kMaxMemory, in_all / (1u << 20) + 1,
                    client ? "" : " of 'gdrperf serve'"));
  };
  const std::uint64_t messages = plus(demand.messages_on_gpu ? 0 : demand.messages_bytes, demand.staging_bytes);
  check(demand.host_bytes(), host, "",
        fmt::format("messages {}, queues {}", about(messages), about(demand.queues_bytes)));
  if (demand.messages_on_gpu) check(demand.gpu_bytes(), gpu, "GPU ", "messages");
}

std::uint64_t gpu_available(const Demand& demand, const std::string& buffer) {
  return demand.messages_on_gpu ? mem::available_gpu_bytes(buffer) : 0;
}

}  // namespace

void check_memory(const Demand& demand, const ResolvedSpec& spec, Side side, std::uint64_t max_bytes) {
  check_room(demand, side, {max_bytes, mem::available_bytes(), 0},
             {max_bytes, gpu_available(demand, spec.end(side).buffer), 0});
}

Account::Share reserve(const Demand& demand, const ResolvedSpec& spec, Side side, std::uint64_t max_bytes,
                       Account* account) {
  if (account == nullptr) {
    check_memory(demand, spec, side, max_bytes);
    return {};
  }
  const std::string& buffer = spec.end(side).buffer;
  const int qps = demand.qps * demand.qps_per_pair;
  return account->take({demand.host_bytes(), demand.gpu_bytes(), buffer, qps}, [&](const Account::State& state) {
    check_room(demand, side, {state.max_bytes, state.host_available, state.host_taken},
               {state.max_bytes, state.gpu_available, state.gpu_taken});
    // Besides: memory that others on this host have taken meanwhile.
    if (state.max_bytes == 0 && state.host_taken > 0) check_memory(demand, spec, side, 0);
    if (qps <= Account::kMostQps - state.qps_taken) return;
    throw Error(ExitCode::kEnvironment,
                fmt::format("{} {}: the server has {} QPs for all runs at the same time, and {} are in use",
                            flag<&TestSpec::qps>(), qps, Account::kMostQps, state.qps_taken),
                fmt::format("use fewer QPs or fewer {}", flag<&TestSpec::threads>()));
  });
}

Account::Share reserve_gpu(Account& account, const std::string& buffer, std::uint64_t bytes) {
  Demand demand;
  demand.messages_bytes = bytes;
  demand.messages_on_gpu = true;
  return account.take({0, bytes, buffer, 0}, [&](const Account::State& state) {
    check_room(demand, Side::kClient, {state.max_bytes, state.host_available, state.host_taken},
               {state.max_bytes, state.gpu_available, state.gpu_taken});
  });
}

}  // namespace gdrperf::engine
