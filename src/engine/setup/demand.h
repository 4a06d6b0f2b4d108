#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

#include "gdrperf/conn/connector.h"
#include "gdrperf/engine/account.h"
#include "gdrperf/engine/resolve.h"

namespace gdrperf::engine {

/// Bytes of one direction's messages: whole pages.
std::uint64_t area_bytes(const ResolvedSpec& resolved);

/// The queues of one end.
struct QueueDemand {
  int send_wr = 1;       ///< per QP
  int recv_wr = 1;
  std::int64_t srq_wr = 0;  ///< of a shared receive queue, in place of recv_wr at each QP; 0: there is none
  int srqs = 1;             ///< of those
  int qps_per_pair = 1;     ///< XRC: one that sends, one that answers
  int send_entries = 1;  ///< of the completion queues
  int recv_entries = 1;
  std::uint64_t requests_bytes = 0;  ///< of work requests built in advance, per QP
};

/// Resources that one end of a run takes, computed from the spec alone, before anything is
/// mapped. Saturates instead of wrapping round.
struct Demand : QueueDemand {
  std::uint64_t messages_bytes = 0;  ///< in the end's own memory
  bool messages_on_gpu = false;
  std::uint64_t staging_bytes = 0;   ///< pinned host memory
  std::uint64_t queues_bytes = 0;    ///< work requests built in advance, queues of the device
  std::uint64_t host_bytes() const;
  std::uint64_t gpu_bytes() const { return messages_on_gpu ? messages_bytes : 0; }

  int qps = 1;
};
Demand demand_of(const ResolvedSpec& resolved, conn::Side side);

/// Throws usage_error, naming the option, for what the device does not have (QPs,
/// entries, requests, bytes of a region).
void check_device(const Demand& demand, const ibv_device_attr& attr, const std::string& device);

/// The same of an open device, and where it speaks iWARP and `spec` does not ask for rdma_cm: nothing else connects its
/// QPs.
void check_device(const TestSpec& spec, const Demand& demand, const verbs::Context& device);

/// Throws Error(kEnvironment) with both figures and the option that permits it where
/// `demand` is more than `max_bytes` (0: a quarter of what is available; of GPU memory
/// likewise).
void check_memory(const Demand& demand, const ResolvedSpec& resolved, conn::Side side, std::uint64_t max_bytes);

/// The run's share of `account`, kept until all of the run is unmapped; throws as check_memory(), other runs counted.
/// Null: nobody else takes any, and check_memory() with `max_bytes` decides.
Account::Share reserve(const Demand& demand, const ResolvedSpec& resolved, conn::Side side, std::uint64_t max_bytes,
                       Account* account);

/// Of one device that has the QPs of both ends, each `qps`. Throws Error(kUsage) where it
/// takes fewer.
void check_shared_device(int qps, const ibv_device_attr& attr, const std::string& device);

/// "3.5 GiB": three digits.
std::string about(std::uint64_t bytes);

}  // namespace gdrperf::engine
