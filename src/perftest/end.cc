#include "perftest/end.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "engine/transfer/data_path.h"
#include "engine/setup/demand.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/verbs/gid.h"
#include "engine/session/session_common.h"

namespace gdrperf::engine {
namespace {

using conn::Side;
using proto::PerftestAddress;

constexpr std::chrono::seconds kPartPatience{5};
constexpr const char* kAddresses = "addresses";
/// perftest stops by its own clock, and what is sent after that finds no receive. It counts up to a quarter of the
/// time, in whole seconds, before its end: between the two this end stops.
std::chrono::nanoseconds before_perftest(std::chrono::nanoseconds duration) {
  const auto margin = std::chrono::floor<std::chrono::seconds>(duration) / 4;
  if (margin.count() > 0) return duration - std::chrono::nanoseconds(margin) / 2;
  constexpr std::chrono::nanoseconds kMost = std::chrono::milliseconds(200);
  return duration - std::min(kMost, duration / 10);
}

/// Kinds of GID at this end that reach the other's.
std::vector<std::string> families_like(const std::vector<verbs::Gid>& gids, const PerftestAddress& theirs) {
  const bool ipv4 = verbs::make_gid(0, verbs::GidType::kRoceV2, conn::gid_from_hex(theirs.gid_raw)).ipv4;
  std::vector<std::string> families;
  for (const verbs::Gid& gid : gids) {
    if (gid.ipv4 == ipv4) families.push_back(verbs::family_name(gid));
  }
  if (families.empty()) families.emplace_back(ipv4 ? "an IPv4 address" : "an IPv6 address");
  return families;
}

proto::PerftestReport report_of(const report::Measurement* own, const ResolvedSpec& spec, report::RateUnit unit) {
  proto::PerftestReport report{spec.size_bytes};
  if (own == nullptr || !own->bandwidth) return report;
  const double scale = 1e9 / perftest_unit_bytes(unit);
  const auto known = [](double value) { return value > 0 ? value : 0.0; };
  report.iterations = own->iterations;
  report.peak = known(own->bandwidth->max_gbytes) * scale;
  report.average = known(own->bandwidth->mean_gbytes) * scale;
  report.mpps = known(own->bandwidth->mean_gbytes) * 1e3 / static_cast<double>(spec.size_bytes);
  return report;
}

void refuse(const std::string& option, const char* why, const std::string& hint) {
  throw usage_error(fmt::format("{}: the peer is perftest: {}", option, why), hint);
}

}  // namespace

double perftest_unit_bytes(report::RateUnit unit) { return unit == report::RateUnit::kGigabits ? 1e9 / 8 : 1 << 20; }

bool perftest_counts(Test test) {
  return test.operation == Operation::kSend || test == Test{Operation::kWrite, Metric::kLatency};
}

LatencyRun PerftestEnd::bounce(Transfer& transfer, Watchers watchers) {
  const bool alone = spec().stop.iterations.value_or(2) < 2;
  if (!perftest_counts(spec().test) || alone) return bounce_latency(transfer, spec(), nullptr, watchers);
  if (transfer.bounce_until(1)) throw peer_error(program() + " ended the run before its first message");
  transfer.histogram().clear();
  if (spec().stop.duration) return bounce_for_a_time(transfer, watchers);
  ResolvedSpec rest = spec();
  --*rest.stop.iterations;
  return bounce_latency(transfer, rest, nullptr, watchers);
}

/// Where this end was held up, perftest's has gone, or waits for the end of the run, before this one is through.
LatencyRun PerftestEnd::bounce_for_a_time(Transfer& transfer, Watchers watchers) {
  std::atomic<bool> over = false;
  const auto until = std::chrono::steady_clock::now() + asked_duration_;
  peer_.interpret([&]() -> std::optional<proto::Message> {
    if (std::chrono::steady_clock::now() < until && !link_.has_left()) return std::nullopt;
    over = true;
    return proto::Stop{};
  });
  watchers.stop = &over;
  LatencyRun run = bounce_latency(transfer, spec(), nullptr, watchers);
  peer_.interpret([]() -> std::optional<proto::Message> { return std::nullopt; });
  if (over) run.measured.stop = report::StopReason::kDuration;
  if (run.measured.iterations == 0)
    throw peer_error(program() + " stopped before a round trip was over",
                     "give both hosts more time, and CPUs of their own");
  return run;
}

report::RunRecord record_of_perftest(const PerftestEnd& perftest, const TestSpec& asked) {
  const LocalEnd& end = perftest.end();
  const bool client = end.side() == Side::kClient;
  report::RunRecord record;
  record.spec = end.spec();
  if (asked.stop.duration) record.spec.stop = asked.stop;
  record.spec.mtu_bytes = end.endpoint().mtu_bytes;
  record.spec.inline_bytes = end.inline_bytes();
  record.warnings = end.notes();
  report::EndRecord& own = client ? record.client : record.server;
  report::EndRecord& other = client ? record.server : record.client;
  own = end_record(end.endpoint());
  other.program = perftest.program();
  other.device = report::kUnknown;
  other.buffer = report::kUnknown;
  (client ? record.spec.client : record.spec.server).device = own.device.raw();
  record.device_kind = own.kind;
  return record;
}

void check_perftest(const TestSpec& spec, Side side) {
  const std::string leave_out = "leave it out, or start 'gdrperf serve' there";
  const Operation operation = spec.test.operation;
  if (operation != Operation::kWrite && operation != Operation::kSend && operation != Operation::kRead) {
    refuse(to_string(spec.test), "its handshake is spoken for write, send and read", "start 'gdrperf serve' there");
  }
  if (spec.transport != Transport::kRc)
    refuse(flag<&TestSpec::transport>(), "its handshake is spoken for RC", leave_out);
  if (spec.connector != Connector::kExchange)
    refuse(flag<&TestSpec::connector>(), "its handshake is spoken over TCP", leave_out + ", and on perftest's side");
  if (spec.ooo != Use::kOff) refuse(flag<&TestSpec::ooo>(), "its QPs need not be such", leave_out);
  if (spec.ece == Use::kOn)
    refuse(flag<&TestSpec::ece>() + " on", "its handshake has no place for what a device offers", leave_out);
  if (spec.direction == Direction::kBidirectional)
    refuse(flag<&TestSpec::direction>(), "its handshake is spoken for one direction",
           leave_out + ", and on perftest's side");
  if (spec.limiter != Limiter::kSoftware)
    refuse(flag<&TestSpec::limiter>(), "the sender keeps the rate here", leave_out);
  if (spec.reverse) refuse(flag<&TestSpec::reverse>(), "its server does not send", leave_out);
  if (!spec.load.empty()) refuse(flag<&TestSpec::load>(), "it has one test on a connection", leave_out);
  if (spec.null_mr || spec.sges > 1)
    refuse(spec.null_mr ? flag<&TestSpec::null_mr>() : flag<&TestSpec::sges>(),
           "its handshake is spoken for one piece of memory a message", leave_out);
  if (spec.verify_seed) refuse(flag<&TestSpec::verify_seed>(), "it does not send gdrperf's pattern", leave_out);
  const std::uint64_t perftests = std::max<std::uint64_t>(spec.size_bytes, 4096);
  if (spec.footprint_bytes != 0 && spec.footprint_bytes != perftests)
    refuse(flag<&TestSpec::footprint_bytes>(), "its memory has a page for each QP, or one message where that is larger",
           leave_out);
  if ((side == Side::kClient ? spec.server : spec.client) != EndSpec())
    refuse(peer_flag<&EndSpec::device>() + " and its like", "it takes no orders", "use that on perftest's side");
  if (spec.stop.forever && perftest_counts(spec.test))
    refuse(stop_flag<&StopRule::forever>(), "it counts the messages as well",
           fmt::format("give {} or {}, on both hosts", stop_flag<&StopRule::iterations>(),
                       stop_flag<&StopRule::duration>()));
  if (rate_of(spec) > 0 && spec.test == Test{Operation::kWrite, Metric::kLatency}) {
    refuse(flag<&TestSpec::rate_per_s>(), "it sends the first message of each round", leave_out);
  }
}

namespace {

/// `asked` with the count or the time that perftest's end goes by.
TestSpec as_perftest_counts(const TestSpec& asked) {
  TestSpec spec = asked;
  StopRule& stop = spec.stop;
  if (!perftest_counts(spec.test)) return spec;
  if (stop.duration) {
    stop.duration = before_perftest(*stop.duration);
  } else {
    stop.iterations = stop.iterations.value_or(kPerftestIterations) * static_cast<std::uint64_t>(spec.qps);
  }
  return spec;
}

}  // namespace

PerftestEnd::PerftestEnd(proto::Channel& channel, proto::PerftestLink& link, Side side, const PerftestTerms& terms)
    : link_(link), side_(side), terms_(terms), peer_(channel, terms.own.stop) {}

void PerftestEnd::set_up(const TestSpec& asked) {
  TestSpec wanted = as_perftest_counts(asked);
  asked_duration_ = asked.stop.duration.value_or(std::chrono::nanoseconds(0));
  const EndSpec& own = side_ == Side::kClient ? wanted.client : wanted.server;
  mem::check_kind(own.buffer, end_flag<&EndSpec::buffer>(Side::kClient));
  OpenDevice device = open_device(own, Side::kClient);
  link_.agree(agree_mtu(wanted.mtu_bytes, device.port, 0));
  // What perftest's end has for each QP, and expects of the other.
  if (wanted.test.metric == Metric::kBandwidth)
    wanted.footprint_bytes = std::max(wanted.size_bytes, link_.page_bytes());
  const ResolvedSpec spec = resolve(wanted);
  if (spec.consume || spec.staged(Side::kClient) || spec.staged(Side::kServer)) {
    refuse(flag<&TestSpec::path>() + " staged", "messages go straight from memory to memory",
           "measure the direct path");
  }
  if (spec.ends_by_immediate()) {
    refuse(to_string(spec.test), "a round ends with the last byte in host memory",
           own_flag<&EndSpec::buffer>() + " host");
  }
  const Demand demand = demand_of(spec, side_);
  check_device(spec, demand, device.context);
  share_ = reserve(demand, spec, side_, terms_.own.max_memory_bytes, terms_.own.account);
  if (side_ == Side::kClient) make(spec, device, nullptr);

  const auto qps = static_cast<std::size_t>(spec.qps);
  std::vector<PerftestAddress> theirs;
  const auto take = [&](std::size_t q) {
    return link_.exchange(
        [&](const PerftestAddress* address) {
          if (!end_) make(spec, device, address);
          return own_address(q);
        },
        kAddresses);
  };
  // Some tests wait for each other first.
  const bool twice = spec.latency() && spec.test.operation != Operation::kSend;
  if (twice) take(0);
  for (std::size_t q = 0; q < qps; ++q) theirs.push_back(take(q));
  end_->connect(remote_endpoint(theirs));
  peer_.watch_port(end_->port_watch());
  // Once for each QP and once more; where receives are posted, once before that, too.
  wait_for_each_other(qps + (spec.test.operation == Operation::kSend ? 2 : 1));
}

void PerftestEnd::make(const ResolvedSpec& spec, OpenDevice& device, const PerftestAddress* theirs) {
  const EndSpec& own = spec.end(side_);
  std::vector<std::string> families;
  if (theirs != nullptr && !theirs->gid_raw.empty()) families = families_like(device.gids, *theirs);
  const verbs::GidChoice gid = choose_gid(device, own, Side::kClient, families);
  by_gid_ =
      theirs != nullptr ? !theirs->gid_raw.empty() : gid.gid.type != verbs::GidType::kInfiniBand || own.gid_index >= 0;
  const SetUpSteps steps(terms_.own.observer, demand_of(spec, side_));
  const Side opener = spec.test.operation == Operation::kWrite ? Side::kServer : Side::kClient;
  end_ = make_end({side_, spec, std::move(device), gid, link_.mtu_bytes(), {}, steps, opener});
}

PerftestAddress PerftestEnd::own_address(std::size_t q) const {
  const proto::Endpoint& own = end_->endpoint();
  PerftestAddress address;
  address.lid = own.lid;
  if (end_->spec().test.operation == Operation::kRead) address.outstanding_reads = own.max_rd_atomic;
  address.qpn = own.qps.at(q).qpn;
  address.psn = own.qps.at(q).psn;
  address.rkey = q < own.rkeys.size() ? own.rkeys[q] : own.rkey;
  if (own.address != 0) address.address = own.address + q * end_->spec().layout().qp_bytes();
  if (by_gid_) address.gid_raw = own.gid_raw;
  return address;
}

PerftestAddress PerftestEnd::exchange(std::size_t q, const char* step) { return link_.exchange(own_address(q), step); }

proto::Endpoint PerftestEnd::remote_endpoint(const std::vector<PerftestAddress>& theirs) const {
  const PerftestAddress& first = theirs.front();
  proto::Endpoint remote;
  remote.lid = first.lid;
  remote.gid_raw = by_gid_ ? first.gid_raw : std::string();
  if (by_gid_ && first.gid_raw.empty()) {
    throw peer_error(fmt::format("{}: {} names no GID, this host does", link_.peer(), program()),
                     fmt::format("give {} on both hosts, or on neither", own_flag<&EndSpec::gid_index>()));
  }
  remote.mtu_bytes = link_.mtu_bytes();
  remote.max_rd_atomic = first.outstanding_reads;
  remote.length = end_->spec().layout().qp_bytes() * theirs.size();
  for (const PerftestAddress& each : theirs)
    remote.qps.push_back({each.qpn, each.psn, proto::Region{each.address, each.rkey}});
  return remote;
}

void PerftestEnd::wait_for_each_other(std::size_t steps) {
  for (std::size_t step = 0; step < steps; ++step)
    exchange(std::min(step, static_cast<std::size_t>(spec().qps) - 1), "readiness");
}

proto::PerftestReport PerftestEnd::part(const report::Measurement* own) {
  constexpr const char* kStep = "end of the run";
  proto::PerftestReport theirs;
  // Both ends of write_lat have counted, and just go.
  if (spec().test != Test{Operation::kWrite, Metric::kLatency}) {
    if (!spec().latency() && spec().test.operation != Operation::kSend) {
      exchange(0, kStep);
      theirs = link_.exchange(report_of(own, spec(), terms_.rate_unit));
    }
    exchange(0, kStep);
  }
  link_.await_end(kPartPatience);
  return theirs;
}

}  // namespace gdrperf::engine
