#include "app/intervals/interval_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/thread.h"
#include "gdrperf/base/units.h"
#include "gdrperf/verbs/port_counters.h"
#include "app/output/stream_write.h"
#include "app/output/terminal.h"

namespace gdrperf::app {
namespace {

using std::chrono::system_clock;

/// RFC 3339 in UTC, to the millisecond.
std::string stamp(system_clock::time_point time) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  const std::time_t whole = ms / 1000;
  std::tm parts{};
  ::gmtime_r(&whole, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, ms % 1000);
}

system_clock::time_point earlier(system_clock::time_point time, double seconds) {
  return time - std::chrono::duration_cast<system_clock::duration>(std::chrono::duration<double>(seconds));
}

double bytes_of(const engine::IntervalState& state, double messages) {
  return messages * static_cast<double>(state.size_bytes);
}

bool latency(const engine::IntervalState& state) { return state.test.metric == Metric::kLatency; }

bool fewer(const engine::PartInterval& one, const engine::PartInterval& other) { return one.messages < other.messages; }

/// "  slower 14 times, 0.5 s in total": one clause for each part, not one for each dip.
std::string remarks_of(const engine::IntervalState& state, const gdrperf::Counters& risen) {
  struct Slower {
    std::size_t times = 0;
    double seconds = 0;
    double first_s = 0;
  };
  std::map<std::string, Slower> parts;
  for (const engine::Dip& dip : state.dips) {
    Slower& part = parts[dip.part];
    if (part.times++ == 0) part.first_s = dip.start_s;
    part.seconds += dip.seconds;
  }
  std::vector<std::string> remarks;
  for (const auto& [name, part] : parts) {
    const std::string who = name.empty() ? "slower" : name + " slower";
    const std::string total = plain_digits(part.seconds, 2);
    remarks.push_back(part.times == 1 ? fmt::format("{} once, for {} s from {:.2f} s on", who, total, part.first_s)
                                      : fmt::format("{} {} times, {} s in total", who, part.times, total));
  }
  for (const auto& [name, count] : risen) {
    if (verbs::counts_trouble(name)) remarks.push_back(fmt::format("{} +{}", name, count));
  }
  return remarks.empty() ? std::string() : fmt::format("  {}", fmt::join(remarks, "; "));
}

std::string rate_json(const engine::IntervalState& state, const char* which, double messages_per_s) {
  if (latency(state)) return fmt::format(R"("{}_per_s":{:.7g})", which, messages_per_s);
  return fmt::format(R"("{}_gbps":{:.7g})", which, bytes_of(state, messages_per_s) * 8e-9);
}

}  // namespace

std::string interval_names(const engine::IntervalState& state) {
  if (latency(state))
    return fmt::format("{:>8} {:>8} {:>12} {:>9} {:>9} {:>9}", "from s", "to s", "round trips", "p50 us", "p99 us",
                       "max us");
  return fmt::format("{:>8} {:>8} {:>12} {:>9}{}", "from s", "to s", "messages", "GB/s",
                     state.parts.empty() ? "" : " slowest part");
}

std::string interval_text(const engine::IntervalState& state, const gdrperf::Counters& risen) {
  std::string text =
      fmt::format("{:>8.2f} {:>8.2f} {:>12}", state.start_s, state.start_s + state.seconds, state.messages);
  const auto rate = [&](double messages) { return four_digits(bytes_of(state, messages) / state.seconds / 1e9); };
  if (latency(state)) {
    for (const double ns : {state.p50_ns, state.p99_ns, state.max_ns})
      text += fmt::format(" {:>9}", four_digits(ns / 1e3));
  } else {
    text += fmt::format(" {:>9}", rate(state.unrounded_messages()));
  }
  if (const auto slowest = std::min_element(state.parts.begin(), state.parts.end(), fewer);
      slowest != state.parts.end()) {
    text += fmt::format(" {}: {}", slowest->name, rate(slowest->messages));
  }
  return text + remarks_of(state, risen);
}

std::string interval_json(const engine::IntervalState& state, system_clock::time_point end,
                          const gdrperf::Counters& risen) {
  const double end_s = state.start_s + state.seconds;
  std::string text =
      fmt::format(R"({{"end":"{}","op":"{}","size_bytes":{},"start_s":{:.6f},"duration_s":{:.6f},"messages":{},{},{})",
                  stamp(end), to_string(state.test), state.size_bytes, state.start_s, state.seconds, state.messages,
                  rate_json(state, "mean", state.unrounded_messages() / state.seconds),
                  rate_json(state, "min", state.slowest_per_s));
  if (latency(state)) {
    text += fmt::format(R"(,"p50_ns":{:.7g},"p99_ns":{:.7g},"p999_ns":{:.7g},"max_ns":{:.7g})", state.p50_ns,
                        state.p99_ns, state.p999_ns, state.max_ns);
  }
  if (!state.parts.empty()) {
    text += R"(,"parts":[)";
    for (const engine::PartInterval& part : state.parts) {
      text += fmt::format(R"({}{{"name":"{}",{}}})", text.back() == '[' ? "" : ",", part.name,
                          rate_json(state, "mean", part.messages / state.seconds));
    }
    text += "]";
  }
  text += R"(,"dips":[)";
  for (const engine::Dip& dip : state.dips) {
    const std::string part = dip.part.empty() ? std::string() : fmt::format(R"("part":"{}",)", dip.part);
    text += fmt::format(R"({}{{{}"start":"{}","start_s":{:.6f},"duration_s":{:.6f},{}}})",
                        text.back() == '[' ? "" : ",", part, stamp(earlier(end, end_s - dip.start_s)), dip.start_s,
                        dip.seconds, rate_json(state, "mean", dip.messages_per_s));
  }
  text += R"(],"counters":{)";
  for (const auto& [name, count] : risen)
    text += fmt::format(R"({}"{}":{})", text.back() == '{' ? "" : ",", name, count);
  return text + "}}";
}

IntervalLog::IntervalLog(IntervalOptions options, engine::RunObserver& next)
    : options_(std::move(options)), next_(next), out_(options_.file == "-" ? STDOUT_FILENO : -1) {
  if (options_.seconds <= 0) return;
  if (!options_.file.empty() && out_ < 0) {
    file_ = UniqueFd(::open(options_.file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    out_ = file_.get();
    if (out_ < 0) throw call_error("--interval-file " + options_.file, errno, "", "choose another path");
  }
  if (options_.metrics != nullptr) options_.metrics->set(sums_.text());
  writer_ = start_thread(
      "intervals", [this] { write_all(); },
      [](const std::exception_ptr&) { say("intervals are not written any more: out of memory"); });
}

IntervalLog::~IntervalLog() { finish(); }

void IntervalLog::finish() {
  {
    const MutexLock guard(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  writer_ = {};  // joins
}

void IntervalLog::port(const std::string& device, int number) {
  if (options_.seconds <= 0) return;
  const MutexLock guard(counting_);
  const std::pair<std::string, int> port(device, number);
  if (std::find(ports_.begin(), ports_.end(), port) == ports_.end()) ports_.push_back(port);
  counters_ = read_ports();
}

gdrperf::Counters IntervalLog::read_ports() const {
  gdrperf::Counters sum;
  for (const auto& [device, number] : ports_) {
    for (const auto& [name, count] : verbs::read_port_counters(device, number)) sum[name] += count;
  }
  return sum;
}

gdrperf::Counters IntervalLog::risen_counters(std::string& devices) {
  const MutexLock guard(counting_);
  for (const auto& [device, number] : ports_) devices += (devices.empty() ? "" : ",") + device;
  gdrperf::Counters now = read_ports();
  gdrperf::Counters more = gdrperf::risen(counters_, now);
  counters_ = std::move(now);
  return more;
}

void IntervalLog::interval(const engine::IntervalState& state) {
  const MutexLock guard(mutex_);
  if (waiting_.size() == kMostWaiting) waiting_.pop_front();
  waiting_.push_back({state, system_clock::now()});
  changed_.notify_one();
}

void IntervalLog::write_all() {
  while (true) {
    Entry entry;
    {
      MutexLock guard(mutex_);
      while (waiting_.empty() && !over_) guard.wait(changed_);
      if (waiting_.empty()) return;
      entry = std::move(waiting_.front());
      waiting_.pop_front();
    }
    write(entry);
  }
}

void IntervalLog::write(const Entry& entry) {
  std::string devices;
  const gdrperf::Counters more = risen_counters(devices);
  if (options_.metrics != nullptr) {
    sums_.add(entry.state, devices, more);
    options_.metrics->set(sums_.text());
  }
  if (options_.lines) {
    if (std::string names = interval_names(entry.state); names != names_) say(names_ = std::move(names));
    say(interval_text(entry.state, more));
  }
  if (!options_.file.empty()) write_record(interval_json(entry.state, entry.end, more) + "\n");
}

void IntervalLog::write_record(const std::string& line) {
  if (out_ < 0 || write_stream(out_, line)) return;
  say_error(call_error("--interval-file " + options_.file, errno, "", "the run goes on, without further intervals"));
  out_ = -1;
}

}  // namespace gdrperf::app
