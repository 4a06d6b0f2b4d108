// gdrperf reg_lat: how long memory takes to be registered and released.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/options/lists.h"
#include "app/options/options.h"
#include "app/output/output.h"
#include "app/output/table.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/engine/registration_cost.h"
#include "gdrperf/mem/buffer.h"
#include "gdrperf/mem/kind.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/verbs/device.h"

namespace gdrperf::app {
namespace {

using Json = nlohmann::ordered_json;

struct RegLatOptions {
  std::string device;
  std::vector<std::string> buffers = {"host"};
  std::vector<std::uint64_t> sizes = parse_size_list("4K:1G:x4", "-s");
  std::vector<Registration> ways = {Registration::kAuto};
  bool odp = false;
  std::chrono::nanoseconds time = std::chrono::milliseconds(100);
  std::string json;
};

/// One row; `why_not` where memory of that kind and size cannot be registered so.
struct RegRow {
  engine::RegistrationRun run;
  engine::RegistrationCost cost;
  std::string why_not;
};

RegRow measure_reg(const verbs::Context& device, const engine::RegistrationRun& run) {
  RegRow row{run, {}, {}};
  try {
    row.cost = engine::measure_registration(device, run);
  } catch (const Error& error) {
    row.why_not = error.what();
  }
  return row;
}

std::vector<RegRow> measure_all(const verbs::Context& device, const RegLatOptions& options) {
  std::vector<RegRow> rows;
  for (const std::string& buffer : mem::expand_kinds(options.buffers, "--buffer")) {
    const bool gpu = mem::on_gpu(mem::parse_kind(buffer, "--buffer"));
    const std::vector<Registration> ways = gpu ? options.ways : std::vector{Registration::kAuto};
    for (const Registration how : ways) {
      for (const bool odp : options.odp && !gpu ? std::vector{false, true} : std::vector{false}) {
        for (const std::uint64_t bytes : options.sizes) {
          rows.push_back(measure_reg(device, {buffer, how, odp, bytes, options.time}));
          // What a kind of memory cannot at one size it cannot at the next.
          if (!rows.back().why_not.empty()) break;
        }
      }
    }
  }
  return rows;
}

Json reg_figures(const stats::Summary& summary) {
  Json value = {
      {"median_ns", summary.median}, {"min_ns", summary.min}, {"max_ns", summary.max}, {"mean_ns", summary.mean}};
  if (summary.median_ci) value["ci95_ns"] = {summary.median_ci->low, summary.median_ci->high};
  return value;
}

std::string to_json(const verbs::Context& device, const std::vector<RegRow>& rows) {
  Json list = Json::array();
  for (const RegRow& row : rows) {
    Json each = {{"buffer", row.run.buffer}, {"bytes", row.run.bytes}, {"odp", row.run.odp}};
    if (row.why_not.empty()) {
      each.update({{"registration", row.cost.registration},
                   {"samples", row.cost.samples},
                   {"register", reg_figures(row.cost.register_ns)},
                   {"release", reg_figures(row.cost.release_ns)}});
    } else {
      each["error"] = row.why_not;
    }
    list.push_back(std::move(each));
  }
  return Json{{"device", device.name()},
              {"device_kind", verbs::to_string(device.kind())},
              {"registrations", std::move(list)}}
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

std::string reg_interval(const stats::Summary& summary) {
  if (!summary.median_ci) return "-";
  return fmt::format("{:.2f} .. {:.2f}", summary.median_ci->low / 1e3, summary.median_ci->high / 1e3);
}

void print(const verbs::Context& device, const std::vector<RegRow>& rows, std::ostream& out) {
  Table table({"BUFFER", "HOW", "SIZE", "REGISTER us", "95 %", "LEAST", "RELEASE us", "95 %", "LEAST", "SAMPLES"});
  for (const RegRow& row : rows) {
    if (!row.why_not.empty()) {
      table.add_line(fmt::format("{}{}: {}", row.run.buffer, row.run.odp ? " with on-demand paging" : "", row.why_not));
      continue;
    }
    const engine::RegistrationCost& cost = row.cost;
    table.add({row.run.buffer, cost.registration + (row.run.odp ? ", odp" : ""), format_size(row.run.bytes),
               fmt::format("{:.2f}", cost.register_ns.median / 1e3), reg_interval(cost.register_ns),
               fmt::format("{:.2f}", cost.register_ns.min / 1e3), fmt::format("{:.2f}", cost.release_ns.median / 1e3),
               reg_interval(cost.release_ns), fmt::format("{:.2f}", cost.release_ns.min / 1e3),
               std::to_string(cost.samples)});
  }
  table.print(out);
  out << fmt::format("Medians, with their 95 % interval, on {} (device kind {}).\n", device.name(),
                     verbs::to_string(device.kind()));
}

int run(const RegLatOptions& options) {
  for (const std::uint64_t size : options.sizes) {
    if (size == 0) throw usage_error("-s 0: memory of no bytes cannot be registered");
  }
  const verbs::Context device = verbs::Context::open(options.device);
  for (const std::string& buffer : options.buffers) {
    if (!buffer.ends_with("all")) mem::check_kind(buffer, "--buffer");
  }
  const std::vector<RegRow> rows = measure_all(device, options);
  if (options.json != "-") print(device, rows, std::cout);
  if (!options.json.empty()) write_output(options.json, to_json(device, rows));
  const bool none = std::none_of(rows.begin(), rows.end(), [](const RegRow& row) { return row.why_not.empty(); });
  return static_cast<int>(none ? ExitCode::kEnvironment : ExitCode::kOk);
}

void take_ways(RegLatOptions& options, const std::string& text) {
  if (text == "all") {
    options.ways = {Registration::kDataDirect, Registration::kDmabuf, Registration::kDmabufPcie,
                    Registration::kPeermem};
    return;
  }
  TestSpec spec;
  take(setting<&TestSpec::registration>(), spec, text, "--register");
  options.ways = {spec.registration};
}

constexpr const char* kRegLatFooter = R"(
Examples:
  gdrperf reg_lat                                   4 KiB to 1 GiB of host memory
  gdrperf reg_lat --buffer host,hugepage --odp -s 2M,64M
  gdrperf reg_lat --buffer cuda:0 --register all --json reg.json)";

}  // namespace

void add_reg_lat_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<RegLatOptions>();
  CLI::App* command =
      app.add_subcommand("reg_lat", "Time to register memory with a NIC and to release it, by size and kind");
  const auto value = [&](const char* name, const char* type, const char* help, auto take) {
    command->add_option_function<std::string>(name, take, help)->type_name(type);
  };
  value("-d,--ib-dev", "DEVICE", "RDMA device (default: the first with an active port)",
        [options](const std::string& text) { options->device = text; });
  value("-s,--size", "SIZES", "sizes, a list or a range (default: 4K:1G:x4)",
        [options](const std::string& text) { options->sizes = parse_size_list(text, "-s"); });
  value("--buffer", "KINDS", "kinds of memory, a list, or all (default: host)",
        [options](const std::string& text) { options->buffers = split_list(text, "--buffer"); });
  value("--register", "HOW", "how to register GPU memory, as in the tests, or all (default: the first that works)",
        [options](const std::string& text) { take_ways(*options, text); });
  command->add_flag("--odp", options->odp, "host memory for on-demand paging, too");
  value("--time", "TIME", "for each size, at least 10 times (default: 100ms)",
        [options](const std::string& text) { options->time = parse_duration(text, "--time"); });
  value("--json", "FILE", "write the results as JSON ('-': standard output)",
        [options](const std::string& text) { options->json = text; });
  add_softnic_flag(*command);
  command->footer(kRegLatFooter);
  command->final_callback([options, &action] {
    action = [options](const Argv&) { return run(*options); };
  });
}

}  // namespace gdrperf::app
