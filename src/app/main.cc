#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cmd_baseline.h"
#include "cmd_cluster.h"
#include "cmd_compare.h"
#include "cmd_devices.h"
#include "cmd_doctor.h"
#include "cmd_report.h"
#include "cmd_topo.h"
#include "command.h"
#include "gdrperf/app/options.h"
#include "gdrperf/app/softnic_exec.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/limits.h"
#include "gdrperf/base/standard_descriptors.h"
#include "gdrperf/base/version.h"
#include "parse_words.h"
#include "process_setup.h"
#include "terminal.h"

namespace gdrperf::app {
namespace {

constexpr const char* kFooter = R"(
gdrperf COMMAND --help shows options, defaults and units.

Start on the server:   gdrperf serve
then on the client:    gdrperf write_bw HOST -a
or without a NIC:      gdrperf sweep --local --softnic

Exit codes: 0 ok, 1 regression or failed check, 2 usage, 3 this machine cannot (device, memory,
port, disk), 4 inconclusive, 5 the other end failed or data was wrong.)";

int run(int argc, char** argv) {
  set_up_process();
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--softnic") == 0) enter_softnic(argv);
  }
  CLI::App app("RDMA performance between two ends, and what the path between them can do",
               "gdrperf");
  app.set_version_flag("--version", fmt::format("gdrperf {} ({})", tool_version(), tool_git()));
  app.footer(kFooter);
  app.allow_extras();
  app.prefix_command(false);
  Action action;
  add_serve_command(app, action);
  add_test_commands(app, action);
  add_sweep_command(app, action);
  add_verify_command(app, action);
  add_cluster_command(app, action);
  DevicesOptions devices;
  TopoOptions topo;
  DoctorOptions doctor;
  BaselineOptions baseline;
  CompareOptions compare;
  ReportOptions report;
  CLI::App* devices_command = add_devices_command(app, devices);
  add_softnic_flag(*devices_command);
  devices_command->final_callback(
      [&] { action = [&devices](const Argv&) { return run_devices(devices, std::cout); }; });
  CLI::App* topo_command = add_topo_command(app, topo);
  add_softnic_flag(*topo_command);
  topo_command->final_callback(
      [&] { action = [&topo](const Argv&) { return run_topo(topo, std::cout); }; });
  CLI::App* doctor_command = add_doctor_command(app, doctor);
  add_softnic_flag(*doctor_command);
  doctor_command->final_callback(
      [&] { action = [&doctor](const Argv&) { return run_doctor(doctor, std::cout); }; });
  add_baseline_command(app, baseline)->final_callback(
      [&] { action = [&baseline](const Argv&) { return run_baseline(baseline, std::cout); }; });
  add_compare_command(app, compare)->final_callback(
      [&] { action = [&compare](const Argv&) { return run_compare(compare, std::cout, std::cerr); }; });
  add_report_command(app, report)->final_callback(
      [&] { action = [&report](const Argv&) { return run_report(report, std::cerr); }; });
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    command->allow_extras();
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    throw parse_failure(app, error);
  }
  refuse_unknown(app);
  if (!action) {
    std::cerr << app.help();
    return static_cast<int>(ExitCode::kUsage);
  }
  return action(Argv(argv, argv + argc));
}

int report_error(const Error& error) {
  say_error(error);
  return static_cast<int>(error.code());
}

// A full disk below a redirected table must not pass for success.
int with_output_flushed(int code) {
  std::cout.flush();
  if (std::cout.good() && std::fflush(stdout) == 0) return code;
  end_if_reader_gone();
  return report_error(
      Error(ExitCode::kEnvironment, "cannot write all of standard output", "free space"));
}

}  // namespace

}  // namespace gdrperf::app

int main(int argc, char** argv) {
  using namespace gdrperf;
  occupy_standard_descriptors();
  try {
    return app::with_output_flushed(app::run(argc, argv));
  } catch (const Error& error) {
    return app::report_error(error);
  } catch (const std::bad_alloc&) {
    return app::report_error(app::out_of_memory());
  } catch (const std::system_error& error) {  // no thread, most of all
    return app::report_error(Error(ExitCode::kEnvironment, error.what(), limit_hint(error.code().value())));
  } catch (const std::exception& error) {
    return app::report_error(Error(ExitCode::kEnvironment, error.what()));
  }
}
