#include "app/options/requirements.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/options/options.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/base/printable.h"
#include "gdrperf/base/compat/real.h"
#include "gdrperf/base/units.h"
#include "gdrperf/report/fields.h"
#include "gdrperf/report/network.h"
#include "gdrperf/report/required.h"
#include "gdrperf/stats/summary.h"

namespace gdrperf::app {
namespace {

constexpr const char* kGroup = "Required results (exit code 1 if not reached)";

double positive_number(const std::string& text, const char* flag, const char* what) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = real_from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || !std::isfinite(value) || value <= 0) {
    throw usage_error(fmt::format("{} '{:.40}': give {}", flag, text, what));
  }
  return value;
}

/// "100" is Gb/s; a unit may say otherwise: "12.5GB/s".
double gigabits(const std::string& text) {
  constexpr const char* kFlag = flags::kMinGbps;
  const bool with_unit = !text.empty() && std::isalpha(static_cast<unsigned char>(text.back()));
  if (with_unit) return gigabits_from_gigabytes(parse_rate(text, kFlag) / 1e9);
  return positive_number(text, kFlag, "Gb/s (1e9 bits) like 100, or a rate with its unit like 12.5GB/s");
}

/// Facts of the run itself that may be why it is slow.
std::vector<std::string> why_of_record(const report::RunRecord& record) {
  std::vector<std::string> why;
  if (record.spec.ordering == Ordering::kStrict) why.emplace_back("its memory is registered without relaxed ordering");
  if (record.client.registration == "peermem" || record.client.registration == "dmabuf-pcie") {
    why.push_back(fmt::format("GPU memory is registered by {}", record.client.registration));
  }
  if (record.spec.path == Path::kStaged) why.emplace_back("data go through host memory");
  if (const auto network = report::network_of(record.measured); network && network->verdict() != "clean") {
    why.push_back(fmt::format("the network was {}", network->verdict()));
  }
  if (record.path.host_node == "remote") why.emplace_back("the host memory is of another NUMA node than the NIC");
  if (record.measured.unstable) why.emplace_back("it was still unstable when its time was over");
  return why;
}

/// Rate over the least that is asked; 1 for latencies.
double share_of_required(const report::RunRecord& record) {
  const double gbits = gigabits_from_gigabytes(report::goodput_gbytes(record.measured));
  double least = record.required.min_gbps.value_or(0);
  if (record.required.min_efficiency)
    least = std::max(least, *record.required.min_efficiency * record.path.ceiling_gbps);
  return std::isfinite(gbits) && least > 0 ? gbits / least : 1;
}

}  // namespace

void add_required_options(CLI::App& command, report::Required& required) {
  const auto option = [&](const char* name, const char* type, const char* help, auto take) {
    command.add_option_function<std::string>(name, take, help)->type_name(type)->group(kGroup);
  };
  option(flags::kMinGbps, "GBPS", "least median bandwidth, in Gb/s (1e9 bits) or with its unit, like 12.5GB/s",
         [&required](const std::string& text) { required.min_gbps = gigabits(text); });
  option(flags::kMaxP99Us, "US", "largest p99 of a latency test, in microseconds",
         [&required](const std::string& text) {
           required.max_p99_us = positive_number(text, flags::kMaxP99Us, "microseconds, like 3.5");
         });
  option(
      flags::kMinEfficiency, "PERCENT",
      "least median bandwidth, in percent of the theoretical maximum of path and port",
      [&required](const std::string& text) { required.min_efficiency = parse_percent(text, flags::kMinEfficiency); });
}

void check_required(const report::Required& required, std::span<const Test> tests) {
  const auto any = [&](Metric metric) {
    return std::any_of(tests.begin(), tests.end(), [&](const Test& test) { return test.metric == metric; });
  };
  if ((required.min_gbps || required.min_efficiency) && !any(Metric::kBandwidth)) {
    throw usage_error(
        fmt::format("{}: {} measures no bandwidth", required.min_gbps ? flags::kMinGbps : flags::kMinEfficiency,
                    to_string(tests.front())),
        "--max-p99-us is for latencies");
  }
  if (required.max_p99_us && !any(Metric::kLatency)) {
    throw usage_error(fmt::format("--max-p99-us: {} measures no latency", to_string(tests.front())),
                      "--min-gbps and --min-efficiency are for bandwidth");
  }
}

void RequiredRuns::add(const report::RunRecord& record, std::vector<std::string> path_reasons) {
  if (report::met(record).empty()) return;
  ++asked_;
  const std::string group = fmt::format("{} at {} of {} pairs", to_string(record.spec.test),
                                        format_size(record.spec.size_bytes), record.relation);
  const double gbytes = report::goodput_gbytes(record.measured);
  if (std::isfinite(gbytes)) rates_[group].push_back(gbytes);
  const std::string nic = record.client.device.empty() ? record.spec.client.device : printable(record.client.device);
  OfNic& of_nic = nics_[nic];
  ++of_nic.asked;
  bool missed = false;
  for (const report::Miss& miss : report::misses(record)) {
    const std::string text = report::run_name(record) + ": " + miss.text;
    if (!miss.known) {
      unknown_.push_back(text);
      continue;
    }
    std::vector<std::string> why = why_of_record(record);
    why.insert(why.begin(), path_reasons.begin(), path_reasons.end());
    missed_.push_back({text, group, nic, share_of_required(record), gbytes, std::move(why)});
    missed = true;
  }
  of_nic.missed += std::size_t{missed};
}

std::vector<std::string> RequiredRuns::why_of(const Missed& missed) const {
  std::vector<std::string> why = missed.why;
  const auto alike = rates_.find(missed.group);
  constexpr std::size_t kFewest = 3;
  constexpr double kAlike = 0.9;
  if (alike == rates_.end() || alike->second.size() < kFewest) return why;
  const double middle = stats::median(alike->second);
  const char* words = missed.gbytes < kAlike * middle ? "this one alone" : "no worse than the others";
  why.insert(why.begin(), fmt::format("{}: {} GB/s is the median of {}", words, plain_digits(middle, 3), missed.group));
  return why;
}

bool RequiredRuns::whole_nic(const std::string& nic) const {
  constexpr std::size_t kFewest = 3;
  const OfNic& own = nics_.at(nic);
  return own.missed == own.asked && own.asked >= kFewest &&
         std::any_of(nics_.begin(), nics_.end(), [](const auto& one) { return one.second.missed < one.second.asked; });
}

void RequiredRuns::print_whole_nic(const std::string& nic, const std::function<void(const std::string&)>& line) const {
  double least = HUGE_VAL;
  double most = 0;
  for (const Missed& each : missed_) {
    if (each.nic != nic) continue;
    least = std::min(least, each.share);
    most = std::max(most, each.share);
  }
  line(fmt::format("{}: each of its {} runs: {:.0f} to {:.0f} % of what is required", nic, nics_.at(nic).asked,
                   100 * least, 100 * most));
}

void RequiredRuns::print(std::ostream& out, const report::ConsoleOptions& options) const {
  if (asked_ == 0) return;
  out << '\n';
  const auto line = [&](const char* verdict, Style style, const std::string& text) {
    out << styled(options.colour, style, verdict) << wrapped(verdict + printable(text), options.columns, 9).substr(9)
        << '\n';
  };
  std::vector<const Missed*> worst;
  for (const Missed& each : missed_) worst.push_back(&each);
  std::stable_sort(worst.begin(), worst.end(),
                   [](const Missed* one, const Missed* other) { return one->share < other->share; });
  std::set<std::string> told;
  for (const Missed* each : worst) {
    if (whole_nic(each->nic)) {
      if (!told.insert(each->nic).second) continue;
      print_whole_nic(each->nic, [&](const std::string& text) { line("MISSED   ", Style::kBad, text); });
      out << "         likely: this NIC, its port, cable or PCIe link: runs of other NICs are not\n"
             "         slow\n";
      continue;
    }
    line("MISSED   ", Style::kBad, each->text);
    const std::vector<std::string> why = why_of(*each);
    if (!why.empty())
      out << wrapped(printable(fmt::format("         likely: {}", fmt::join(why, "; "))), options.columns, 9) << '\n';
  }
  for (const std::string& each : unknown_) line("UNKNOWN  ", Style::kDoubtful, each);
  if (missed_.empty() && unknown_.empty()) {
    out << fmt::format("Required: met by {} run{}\n", asked_, asked_ == 1 ? "" : "s");
  } else {
    out << fmt::format("Required of {} run{}: {} missed, {} could not be judged\n", asked_, asked_ == 1 ? "" : "s",
                       missed_.size(), unknown_.size());
  }
}

ExitCode RequiredRuns::exit_code() const {
  if (!missed_.empty()) return ExitCode::kRegression;
  return unknown_.empty() ? ExitCode::kOk : ExitCode::kInconclusive;
}

}  // namespace gdrperf::app
