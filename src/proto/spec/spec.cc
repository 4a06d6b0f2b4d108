#include "gdrperf/proto/spec.h"

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/blocks.h"
#include "gdrperf/proto/flow.h"
#include "gdrperf/proto/hints.h"
#include "gdrperf/proto/multicast.h"
#include "gdrperf/proto/operation.h"
#include "gdrperf/proto/settings.h"

namespace gdrperf {
namespace {

void check_stop(const StopRule& stop) {
  if (stop.forever && (stop.iterations || stop.duration)) {
    throw usage_error(
        fmt::format("{} and {} exclude each other: a signal ends a run that goes on", stop_flag<&StopRule::forever>(),
                    stop.iterations ? stop_flag<&StopRule::iterations>() : stop_flag<&StopRule::duration>()));
  }
  if (!stop.iterations || !stop.duration) return;
  throw usage_error(fmt::format("{} and {} exclude each other: a run ends after a number of messages or after a time",
                                flag<&TestSpec::stop, &StopRule::iterations>(),
                                flag<&TestSpec::stop, &StopRule::duration>()));
}

void check_reverse(const TestSpec& spec) {
  if (!spec.reverse) return;
  const std::string reverse = flag<&TestSpec::reverse>();
  if (spec.direction == Direction::kBidirectional) {
    throw usage_error(fmt::format("{} and {}: client and server both send then", reverse, flag<&TestSpec::direction>()),
                      "leave one of them out");
  }
  if (spec.verify_seed) {
    throw usage_error(fmt::format("{}: verified messages go from the client", reverse),
                      fmt::format("{} verifies both directions", flag<&TestSpec::direction>()));
  }
}

void check_depths(const TestSpec& spec) {
  const std::string depth = flag<&TestSpec::tx_depth>();
  // A depth chosen by itself (0) follows the other two.
  if (spec.tx_depth != 0) {
    for (const auto& [flag, value] : {std::pair{flag<&TestSpec::cq_mod>(), spec.cq_mod},
                                      std::pair{flag<&TestSpec::post_list>(), spec.post_list}}) {
      if (value <= spec.tx_depth) continue;
      throw usage_error(
          fmt::format("{} {}: more than the {} messages in flight of {} {}", flag, value, spec.tx_depth, depth,
                      spec.tx_depth),
          fmt::format("give a deeper queue, {3} {0}, or {1} {2} at most", value, flag, spec.tx_depth, depth));
    }
  }
  if (spec.tx_depth % spec.post_list != 0) {
    throw usage_error(fmt::format("{} {}: must divide the depth of the send queue, {} {}", flag<&TestSpec::post_list>(),
                                  spec.post_list, depth, spec.tx_depth));
  }
}

void check_path(const TestSpec& spec) {
  const std::vector<int> labels = flow_labels_of(spec);
  lag_ports_of(spec);  // throws what is no list
  if (spec.spread != 0 && (!spec.flow_labels.empty() || spec.flow_label != 0)) {
    throw usage_error(fmt::format("{} and {}: both choose the paths of the QPs", flag<&TestSpec::spread>(),
                                  flag<&TestSpec::flow_label>()));
  }
  if (labels.size() > 1 && (spec.transport == Transport::kUd || by_driver(spec.transport))) {
    throw usage_error(fmt::format("{} with {} {}: a client's messages share one address handle, and so one flow label",
                                  spec.spread != 0 ? flag<&TestSpec::spread>() : flag<&TestSpec::flow_label>(),
                                  flag<&TestSpec::transport>(),
                                  to_text(setting<&TestSpec::transport>(), static_cast<std::int64_t>(spec.transport))));
  }
  if (spec.connector == Connector::kExchange) return;
  const auto refuse = [&](const std::string& option, const char* why) {
    throw usage_error(fmt::format("{}: {}; leave {} out to choose it here", option, why, flag<&TestSpec::connector>()));
  };
  if (spec.pkey_index != 0) refuse(flag<&TestSpec::pkey_index>(), "rdma_cm takes the partition of the address");
  if (spec.rnr_timer != TestSpec().rnr_timer) refuse(flag<&TestSpec::rnr_timer>(), "rdma_cm sets the RNR timer");
  if (!spec.lag_ports.empty()) refuse(flag<&TestSpec::lag_ports>(), "rdma_cm chooses the port of a bonded device");
  if (labels.empty()) return;
  throw usage_error(fmt::format("{}: rdma_cm chooses the path; leave {} out to choose it here",
                                spec.spread != 0 ? fmt::format("{} {}", flag<&TestSpec::spread>(), spec.spread)
                                                : fmt::format("{} {}", flag<&TestSpec::flow_label>(), labels.front()),
                                flag<&TestSpec::connector>()));
}

/// "write_bw, send_bw": what has this transport.
std::string tests_over(Transport transport, Metric metric) {
  std::string names;
  for (const OperationFacts& each : operations()) {
    if (goes_over(each.operation, transport))
      names += (names.empty() ? "" : ", ") + to_string(Test{each.operation, metric});
  }
  return names;
}

void check_transport(const TestSpec& spec) {
  if (spec.transport == Transport::kRc) return;
  const std::string asked =
      fmt::format("{} {}", flag<&TestSpec::transport>(),
                  to_text(setting<&TestSpec::transport>(), static_cast<std::int64_t>(spec.transport)));
  const std::string_view kind = to_string(spec.transport);
  if (!goes_over(spec.test.operation, spec.transport)) {
    throw usage_error(fmt::format("{}: verbs have no {} over {}", asked, facts_of(spec.test.operation).request, kind),
                      fmt::format("{} supports {}; {} needs RC", kind, tests_over(spec.transport, spec.test.metric),
                                  to_string(spec.test)));
  }
  if (spec.ece == Use::kOn && (spec.transport == Transport::kXrc || by_driver(spec.transport))) {
    throw usage_error(fmt::format("{}: {} on is not supported there", asked, flag<&TestSpec::ece>()), "leave it out");
  }
  if (spec.ece == Use::kOn && spec.transport == Transport::kUd) {
    throw usage_error(
        fmt::format("{}: {} on is agreed on in a connection, and datagrams have none", asked, flag<&TestSpec::ece>()));
  }
  if (spec.connector == Connector::kRdmaCm) {
    throw usage_error(fmt::format("{}: {} connects RC QPs", asked, flag<&TestSpec::connector>()),
                      fmt::format("leave {} out", flag<&TestSpec::connector>()));
  }
  if (spec.verify_seed && !can_verify(spec.test, spec.transport)) {
    throw usage_error(
        fmt::format("{}: {} cannot be verified: nobody learns when a write has arrived", asked, to_string(spec.test)),
        "write_imm_bw and send_bw are verified over UC");
  }
  if (spec.verify_seed && spec.transport == Transport::kSrd && facts_of(spec.test.operation).receives) {
    throw usage_error(fmt::format("{}: {} compares message by message, and these arrive in any order", asked,
                                  flag<&TestSpec::verify_seed>()),
                      "write_bw and read_bw are verified over SRD");
  }
  if (sizes_within(spec, {spec.size_bytes}).empty()) {
    throw usage_error(fmt::format("{} {}: a message over UD is one packet, of {} bytes at most",
                                  flag<&TestSpec::size_bytes>(), format_size(spec.size_bytes), largest_datagram(spec)),
                      fmt::format("give a smaller {}, or {} uc, whose messages are of any size",
                                  flag<&TestSpec::size_bytes>(), flag<&TestSpec::transport>()));
  }
}

void check_rate(const TestSpec& spec) {
  const double rate = rate_of(spec);
  const std::string asked = flag<&TestSpec::rate_per_s>();
  const std::string burst = fmt::format("{} {}", flag<&TestSpec::burst>(), spec.burst);
  if (spec.limiter == Limiter::kHardware && answers_carry_data(spec)) {
    throw usage_error(fmt::format("{} hw: the data of {} comes in answers, which no device paces",
                                  flag<&TestSpec::limiter>(), to_string(spec.test)),
                      fmt::format("leave it out: the sender keeps {}", asked));
  }
  if (rate <= 0) {
    if (spec.limiter != Limiter::kSoftware)
      throw usage_error(flag<&TestSpec::limiter>() + ": there is no rate", fmt::format("give {} as well", asked));
    if (spec.burst == 1) return;
    throw usage_error(burst + ": without a rate messages leave as they complete",
                      fmt::format("give {} as well", asked));
  }
  const Setting& row = setting<&TestSpec::rate_per_s>();
  if (rate < static_cast<double>(row.range.low) || rate > static_cast<double>(row.range.high)) {
    throw usage_error(fmt::format("{}: with messages of {} that is {} per second; {}", asked,
                                  format_size(spec.size_bytes), plain_digits(rate, 3), rule_of(row)));
  }
  if (spec.test.metric == Metric::kLatency) return;
  if (spec.verify_seed)
    throw usage_error(asked + ": verified messages are sent in rounds, not at a rate",
                      fmt::format("leave {} out", asked));
  if (spec.wait == Wait::kEvent) {
    throw usage_error(fmt::format("{}: a sender that sleeps ({}) misses what is due", asked, flag<&TestSpec::wait>()));
  }
  if (spec.burst % spec.post_list != 0) {
    throw usage_error(
        fmt::format("{}: {} {} posts as many together", burst, flag<&TestSpec::post_list>(), spec.post_list),
        fmt::format("give {} {}, or a multiple of it", flag<&TestSpec::burst>(), spec.post_list));
  }
  if (spec.burst / rate > 1) {
    throw usage_error(fmt::format("{}: one is due every {} s; a second is the longest pause", burst,
                                  plain_digits(spec.burst / rate, 3)),
                      fmt::format("give fewer messages a burst, or a higher {}", asked));
  }
}

void check_load(const TestSpec& spec) {
  if (spec.load.empty() && spec.load_size_bytes != TestSpec().load_size_bytes) {
    throw usage_error(fmt::format("{}: there is no stream", flag<&TestSpec::load_size_bytes>()),
                      fmt::format("give {} as well", flag<&TestSpec::load>()));
  }
  if (spec.load.empty() || !spec.verify_seed) return;
  throw usage_error(
      fmt::format("{}: verified messages are sent in rounds, and nothing else runs meanwhile", flag<&TestSpec::load>()),
      "leave one of them out");
}

void check_latency(const TestSpec& spec) {
  const auto refuse = [](bool typed, const std::string& one, const std::string& other, const char* why) {
    if (typed) throw usage_error(fmt::format("{} and {}: {}", one, other, why), "leave one of them out");
  };
  const bool latency = spec.test.metric == Metric::kLatency;
  const std::string qps = fmt::format("{} {}", flag<&TestSpec::qps>(), spec.qps);
  refuse(latency && spec.qps > 1 && spec.verify_seed, qps, flag<&TestSpec::verify_seed>(),
         "verified messages of a latency test have one QP");
  refuse(latency && spec.qps > 1 && spec.initiator != Initiator::kCpu, qps, flag<&TestSpec::initiator>(),
         "who posts waits for one QP");
  refuse(spec.latency_gap.count() > 0 && rate_of(spec) > 0, flag<&TestSpec::latency_gap>(),
         flag<&TestSpec::rate_per_s>(), "each decides when a message leaves");
  refuse(spec.latency_gap.count() > 0 && spec.verify_seed, flag<&TestSpec::latency_gap>(),
         flag<&TestSpec::verify_seed>(), "verified messages are sent in rounds");
  if (spec.signal == Signal::kNone) return;
  const std::string signal = flag<&TestSpec::signal>();
  if (spec.signal == Signal::kAtomic && !acknowledged(spec.transport)) {
    throw usage_error(fmt::format("{} atomic: there are none over {}", signal, to_string(spec.transport)),
                      "give write or imm");
  }
  refuse(spec.transport == Transport::kSrd, signal, flag<&TestSpec::transport>() + " srd",
         "SRD keeps no order, and a signal may overtake its message");
  refuse(spec.qps > 1, signal, qps, "a signal is that of one QP");
  refuse(spec.verify_seed.has_value(), signal, flag<&TestSpec::verify_seed>(), "the signal's order is what is checked");
  refuse(spec.null_mr, signal, flag<&TestSpec::null_mr>(), "nothing is written there, so nothing would be seen");
}

void check_srq(const TestSpec& spec) {
  if (!spec.srq) return;
  const std::string asked = flag<&TestSpec::srq>();
  if (spec.transport == Transport::kUc || spec.transport == Transport::kSrd) {
    throw usage_error(fmt::format("{}: verbs have shared receive queues for RC and UD, not for {}", asked,
                                  to_string(spec.transport)),
                      "leave one of them out");
  }
  if (!spec.verify_seed) return;
  throw usage_error(asked + ": messages take receives as they come, and not the places that are compared",
                    "leave one of them out");
}

void check_parts(const TestSpec& spec) {
  const bool rails = !spec.rails.empty();
  const bool incast = spec.incast > 1;
  if (!rails && !spec.peer_rails.empty()) {
    throw usage_error(fmt::format("{}: the client has one device", flag<&TestSpec::peer_rails>()),
                      fmt::format("give {} as well", flag<&TestSpec::rails>()));
  }
  if (!incast && !spec.victim.empty()) {
    throw usage_error(
        fmt::format("{} {}: there are no clients that it is the victim of", flag<&TestSpec::victim>(), spec.victim),
        fmt::format("give {} N as well, or a latency test with {}", flag<&TestSpec::incast>(),
                    flag<&TestSpec::load>()));
  }
  if (spec.threads == 1 && !rails && !incast) return;
  const std::string asked = incast  ? fmt::format("{} {}", flag<&TestSpec::incast>(), spec.incast)
                            : rails ? flag<&TestSpec::rails>()
                                    : fmt::format("{} {}", flag<&TestSpec::threads>(), spec.threads);
  const auto refuse = [&](bool typed, const std::string& option, const char* why) {
    if (typed) throw usage_error(fmt::format("{} and {}: {}", asked, option, why), "leave one of them out");
  };
  const bool both_ways = spec.direction == Direction::kBidirectional;
  if (spec.verify_seed && both_ways) {
    throw usage_error(fmt::format("{} and {}: the server's verified laps begin at no common moment", asked,
                                  flag<&TestSpec::direction>()),
                      "verify one direction");
  }
  if (spec.verify_seed && !spec.victim.empty()) {
    throw usage_error(flag<&TestSpec::victim>() + ": nothing is sent while verified laps are compared",
                      "leave one of them out");
  }
  refuse(!spec.victim.empty() && spec.reverse, flag<&TestSpec::reverse>(),
         "the server alone knows whether its messages are on their way");
  refuse(spec.spread != 0 || !spec.flow_labels.empty(),
         spec.spread != 0 ? flag<&TestSpec::spread>() : flag<&TestSpec::flow_label>(),
         "on one thread QPs take flow labels round-robin");
  refuse(spec.client.cpu >= 0, own_flag<&EndSpec::cpu>(), "each thread has a CPU of its own, of the node of its NIC");
  refuse(spec.server.cpu >= 0, peer_flag<&EndSpec::cpu>(), "each thread has a CPU of its own, of the node of its NIC");
  refuse(rails && !spec.client.device.empty(), own_flag<&EndSpec::device>(), "each names the client's devices");
  refuse(incast && spec.threads > 1, flag<&TestSpec::threads>(), "each client has one thread");
  refuse(incast && !spec.peer_rails.empty(), flag<&TestSpec::peer_rails>(), "the server has one device");
  refuse(!spec.victim.empty() && spec.stop.iterations, stop_flag<&StopRule::iterations>(),
         "the victim's test decides how long all of it runs");
  refuse(rails && !incast && !spec.server.device.empty(), peer_flag<&EndSpec::device>(),
         "the server's devices have names of their own");
}

void check_size(const TestSpec& spec) {
  const std::uint64_t only = facts_of(spec.test.operation).only_bytes;
  if (only == 0 || spec.size_bytes == only) return;
  throw usage_error(fmt::format("{} {}: an operation of {} has {} bytes", flag<&TestSpec::size_bytes>(),
                                format_size(spec.size_bytes), to_string(spec.test), only),
                    fmt::format("leave {} out", flag<&TestSpec::size_bytes>()));
}

void check_pieces(const TestSpec& spec) {
  const std::string pieces = fmt::format("{} {}", flag<&TestSpec::sges>(), spec.sges);
  if (spec.sges > 1 && spec.test.operation == Operation::kAtomic)
    throw usage_error(pieces + ": an atomic has one", "leave it out");
  if (static_cast<std::uint64_t>(spec.sges) > spec.size_bytes) {
    throw usage_error(
        fmt::format("{}: a message of {} has as many pieces as bytes at most", pieces, format_size(spec.size_bytes)),
        fmt::format("give a larger {}", flag<&TestSpec::size_bytes>()));
  }
  if (spec.null_mr && spec.verify_seed) {
    throw usage_error(fmt::format("{}: nothing is read from a null memory region, so there is nothing to verify",
                                  flag<&TestSpec::null_mr>()),
                      "leave one of them out");
  }
}

void check_footprint(const TestSpec& spec) {
  if (spec.footprint_bytes == 0 || spec.footprint_bytes >= spec.size_bytes) return;
  throw usage_error(fmt::format("{} {}: must hold a message of {} bytes", flag<&TestSpec::footprint_bytes>(),
                                spec.footprint_bytes, spec.size_bytes));
}

}  // namespace

double rate_of(const TestSpec& spec) {
  return spec.rate_bytes_per_s > 0 ? spec.rate_bytes_per_s / static_cast<double>(spec.size_bytes) : spec.rate_per_s;
}

double paced_rate_of(const TestSpec& spec) { return spec.limiter == Limiter::kHardware ? 0 : rate_of(spec); }

bool answers_carry_data(const TestSpec& spec) {
  return spec.test.operation == Operation::kRead || spec.test.operation == Operation::kAtomic;
}

EndSpec with_defaults(EndSpec asked, const EndSpec& typed_there) {
  const EndSpec none;
  const auto take = [&](auto EndSpec::*member) {
    if (asked.*member == none.*member) asked.*member = typed_there.*member;
  };
  // Ports and GIDs are those of a device.
  const bool same_device = asked.device.empty() || asked.device == typed_there.device;
  take(&EndSpec::device);
  if (same_device) {
    take(&EndSpec::port);
    take(&EndSpec::gid_index);
  }
  if (!asked.buffer_given) take(&EndSpec::buffer);
  if (asked.cpu < 0 && asked.numa < 0) {
    take(&EndSpec::cpu);
    take(&EndSpec::numa);
  }
  return asked;
}

void validate(const TestSpec& spec) {
  for (const Setting& each : settings()) check_range(each, spec);
  for (const Setting& each : settings()) refuse_elsewhere(each, spec);
  check_size(spec);
  check_transport(spec);
  check_multicast(spec);
  check_rate(spec);
  check_load(spec);
  check_latency(spec);
  check_parts(spec);
  check_srq(spec);
  if (!spec.tph.empty()) parse_hints(spec.tph, flag<&TestSpec::tph>());
  check_depths(spec);
  check_footprint(spec);
  check_blocks(spec);
  check_pieces(spec);
  check_path(spec);
  check_reverse(spec);
  check_stop(spec.stop);
}

}  // namespace gdrperf
