// gdrperf connect_rate: what QPs and connections cost.
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/options/options.h"
#include "app/output/output.h"
#include "app/output/table.h"
#include "app/output/terminal.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/thread.h"
#include "gdrperf/base/units.h"
#include "gdrperf/conn/connect_cost.h"
#include "gdrperf/proto/tcp_port.h"
#include "gdrperf/stats/summary.h"
#include "gdrperf/verbs/device.h"
#include "gdrperf/verbs/gid.h"

namespace gdrperf::app {
namespace {

using Json = nlohmann::ordered_json;

struct ConnectRateOptions {
  std::string host;
  bool local = false;
  std::string device;
  int port = kDefaultPort;
  int gid_index = -1;
  std::int64_t count = 100;
  std::string json;
};

struct ConnectEnd {
  verbs::Context device;
  verbs::PortInfo port;
  verbs::Gid gid;
};

ConnectEnd open(const ConnectRateOptions& options) {
  verbs::Context device = verbs::Context::open(options.device);
  const verbs::PortInfo port = verbs::choose_port(device, 0);
  const verbs::Gid gid = verbs::choose_gid(verbs::gid_table(device, port.number), options.gid_index, {}, "-x").gid;
  return {std::move(device), port, gid};
}

/// A step, its name here and in JSON, and how often it can be done in a second.
struct ConnectStep {
  const char* name;
  const char* key;
  std::vector<double> ns;
};

template <typename Cost, typename Member>
ConnectStep connect_step_of(const char* name, const char* key, const std::vector<Cost>& costs, Member member) {
  ConnectStep step{name, key, {}};
  for (const Cost& cost : costs) step.ns.push_back(cost.*member);
  return step;
}

std::vector<ConnectStep> qp_steps(const std::vector<conn::QpCost>& costs) {
  using Q = conn::QpCost;
  std::vector<ConnectStep> steps = {connect_step_of("create a QP", "qp_create", costs, &Q::create_ns),
                                    connect_step_of("RESET to INIT", "qp_init", costs, &Q::init_ns),
                                    connect_step_of("INIT to RTS", "qp_rts", costs, &Q::rts_ns),
                                    connect_step_of("destroy a QP", "qp_destroy", costs, &Q::destroy_ns)};
  ConnectStep whole{"QP, created to RTS", "qp", {}};
  for (const Q& cost : costs) whole.ns.push_back(cost.create_ns + cost.init_ns + cost.rts_ns);
  steps.push_back(std::move(whole));
  return steps;
}

std::vector<ConnectStep> connection_steps(const std::vector<conn::ConnectCost>& costs) {
  using C = conn::ConnectCost;
  return {connect_step_of("resolve the address", "address", costs, &C::address_ns),
          connect_step_of("resolve the route", "route", costs, &C::route_ns),
          connect_step_of("rdma_create_qp", "cm_qp", costs, &C::qp_ns),
          connect_step_of("rdma_connect", "connect", costs, &C::connect_ns),
          connect_step_of("first message", "first_message", costs, &C::first_ns),
          connect_step_of("second message", "second_message", costs, &C::second_ns),
          connect_step_of("disconnect", "disconnect", costs, &C::disconnect_ns),
          connect_step_of("connection, from nothing", "connection", costs, &C::total_ns)};
}

void print(const std::vector<ConnectStep>& steps, const ConnectEnd& end, std::ostream& out) {
  Table table({"STEP", "MEDIAN us", "95 %", "LEAST", "MOST", "PER SECOND", "SAMPLES"});
  for (const ConnectStep& step : steps) {
    const stats::Summary summary = stats::summarize(step.ns);
    const std::string ci =
        summary.median_ci ? fmt::format("{:.2f} .. {:.2f}", summary.median_ci->low / 1e3, summary.median_ci->high / 1e3)
                          : "-";
    table.add({step.name, fmt::format("{:.2f}", summary.median / 1e3), ci, fmt::format("{:.2f}", summary.min / 1e3),
               fmt::format("{:.2f}", summary.max / 1e3), fmt::format("{:.0f}", 1e9 / summary.mean),
               std::to_string(step.ns.size())});
  }
  table.print(out);
  out << fmt::format("One after another on {} (device kind {}, GID {}). PER SECOND is of the mean.\n",
                     end.device.name(), verbs::to_string(end.device.kind()), end.gid.address);
}

std::string to_json(const std::vector<ConnectStep>& steps, const ConnectEnd& end) {
  Json list = Json::object();
  for (const ConnectStep& step : steps) {
    const stats::Summary summary = stats::summarize(step.ns);
    Json each = {{"median_ns", summary.median},
                 {"min_ns", summary.min},
                 {"max_ns", summary.max},
                 {"per_second", 1e9 / summary.mean},
                 {"samples", step.ns.size()}};
    if (summary.median_ci) each["ci95_ns"] = {summary.median_ci->low, summary.median_ci->high};
    list[step.key] = std::move(each);
  }
  return Json{{"device", end.device.name()},
              {"device_kind", verbs::to_string(end.device.kind())},
              {"steps", std::move(list)}}
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

int serve(const ConnectEnd& end, const ConnectRateOptions& options) {
  conn::ConnectServer server(end.device, end.gid, options.port);
  say(fmt::format("waiting for one client of connect_rate at {}, port {}; Ctrl-C ends it", end.gid.address,
                  server.port()));
  server.serve();
  return static_cast<int>(ExitCode::kOk);
}

int run(const ConnectRateOptions& options) {
  const ConnectEnd end = open(options);
  if (!options.local && options.host.empty()) return serve(end, options);
  const auto count = static_cast<std::size_t>(options.count);
  std::vector<ConnectStep> steps = qp_steps(conn::measure_qps(end.device, end.port, end.gid, count));
  std::vector<conn::ConnectCost> costs;
  if (options.local) {
    conn::ConnectServer server(end.device, end.gid, 0);
    const int port = server.port();
    std::jthread thread = start_thread(
        "the local server", [&server] { server.serve(); }, [](const std::exception_ptr&) {});
    costs = conn::measure_connections(end.device, end.gid, end.gid.address, port, count);
  } else {
    costs = conn::measure_connections(end.device, end.gid, options.host, options.port, count);
  }
  for (ConnectStep& step : connection_steps(costs)) steps.push_back(std::move(step));
  if (options.json != "-") print(steps, end, std::cout);
  if (!options.json.empty()) write_output(options.json, to_json(steps, end));
  return static_cast<int>(ExitCode::kOk);
}

constexpr const char* kConnectRateFooter = R"(
Without HOST and --local it answers one client. HOST is an address of the
server's RDMA interface: rdma_cm looks for its device.

Examples:
  gdrperf connect_rate                on node2
  gdrperf connect_rate node2 -n 1000  here
  gdrperf connect_rate --local        one host)";

}  // namespace

void add_connect_rate_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<ConnectRateOptions>();
  CLI::App* command =
      app.add_subcommand("connect_rate", "QPs and rdma_cm connections per second, and what the first message costs");
  const auto value = [&](const char* name, const char* type, const std::string& help, auto take) {
    return command->add_option_function<std::string>(name, take, help)->type_name(type);
  };
  CLI::Option* const host =
      value("HOST", "", "address of the server's RDMA interface ('gdrperf connect_rate' runs there)",
            [options](const std::string& text) {
              if (text.empty()) throw usage_error("HOST is empty: is the variable that should name the server unset?");
              options->host = text;
            });
  command->add_flag("--local", options->local, "client and server in this process")->excludes(host);
  value("-d,--ib-dev", "DEVICE", "RDMA device (default: the first with an active port)",
        [options](const std::string& text) { options->device = text; });
  value("-x,--gid-index", "N", "GID index (default: RoCE v2 over IPv4 first)", [options](const std::string& text) {
    options->gid_index = static_cast<int>(parse_integer(text, "-x", 0, 65535));
  });
  value("-p,--port", "PORT", fmt::format("port of rdma_cm (default: {})", kDefaultPort),
        [options](const std::string& text) {
          options->port = static_cast<int>(parse_integer(text, "-p", 0, proto::kMaxTcpPort));
        });
  value("-n,--iters", "N", "QPs, and connections (default: 100)",
        [options](const std::string& text) { options->count = parse_integer(text, "-n", 1, 100000); });
  value("--json", "FILE", "write the results as JSON ('-': standard output)",
        [options](const std::string& text) { options->json = text; });
  add_softnic_flag(*command);
  command->footer(kConnectRateFooter);
  command->final_callback([options, &action] {
    action = [options](const Argv&) { return run(*options); };
  });
}

}  // namespace gdrperf::app
