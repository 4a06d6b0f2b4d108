#include "engine/session/session_common.h"

#include <fmt/format.h>

#include "gdrperf/verbs/ece.h"
#include "gdrperf/verbs/port_counters.h"

namespace gdrperf::engine {

void tell_failure(proto::Channel& channel, const Error& error) noexcept {
  try {
    channel.send(proto::Failure{static_cast<int>(error.code()), error.what(), error.hint()});
  } catch (const Error&) {
    // The peer is gone; it cannot be told.
  }
}

report::EndRecord end_record(const proto::Endpoint& endpoint) {
  report::EndRecord record;
  record.device = endpoint.device;
  record.kind = endpoint.kind;
  record.firmware = endpoint.firmware;
  record.driver = endpoint.driver;
  record.port = endpoint.port;
  record.gid_index = endpoint.gid_index;
  record.gid = endpoint.gid;
  record.gid_type = endpoint.gid_family;
  record.gid_why = endpoint.gid_why;
  record.buffer = endpoint.buffer;
  record.registration = endpoint.registration;
  record.checker = endpoint.checker;
  record.gpu = endpoint.gpu;
  record.cpu = endpoint.cpu;
  record.numa = endpoint.numa;
  record.doorbells = endpoint.doorbells;
  record.interrupt_cpus = endpoint.interrupt_cpus;
  record.relaxed_ordering = endpoint.relaxed_ordering;
  record.ooo = endpoint.ooo;
  record.ece = verbs::to_text(endpoint.ece);
  return record;
}

bool server_rests(const ResolvedSpec& spec) {
  if (spec.op().consumes_receives || spec.bidirectional() || spec.reverse || spec.verify_seed) return false;
  return !spec.latency() || spec.op().round_end == RoundEnd::kOwnCompletion;
}

void check_signals(const Transfer& transfer, const ResolvedSpec& spec, conn::Side side) {
  const std::uint64_t early = transfer.early_signals();
  if (early == 0) return;
  throw peer_error(fmt::format("the signals of {} of {} messages were seen by the {} before the message was there",
                               early, transfer.rounds(), side == conn::Side::kClient ? "client" : "server"),
                   spec.relaxes_ordering()
                       ? fmt::format("memory is registered with relaxed ordering: {} off keeps the order",
                                     flag<&TestSpec::ordering>())
                       : "the path between NIC and memory does not keep the order of writes");
}

std::string rest_warning(const Transfer& transfer) {
  if (transfer.rests() == 0) return {};
  return fmt::format(
      "another program was using this CPU: waits of more than 60 us were spent asleep, and messages seen 10 to 40 us "
      "late; stop it, or give client and server CPUs of their own ({}, {})",
      own_flag<&EndSpec::cpu>(), peer_flag<&EndSpec::cpu>());
}

CounterWatch::CounterWatch(const proto::Endpoint& endpoint)
    : device_(endpoint.device), port_(endpoint.port), before_(verbs::read_port_counters(device_, port_)),
      begin_(std::chrono::steady_clock::now()) {}

Counters CounterWatch::risen() const { return gdrperf::risen(before_, verbs::read_port_counters(device_, port_)); }

double CounterWatch::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

}  // namespace gdrperf::engine
