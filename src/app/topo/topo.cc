#include "app/topo/topo.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/command.h"
#include "app/options/options.h"
#include "app/output/sink.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/printable.h"
#include "gdrperf/base/terminal.h"
#include "app/topo/placement.h"
#include "app/topo/json.h"
#include "app/topo/text.h"

namespace gdrperf::app {
namespace {

constexpr const char* kFooter = R"(
Relations: PIX at most one PCIe switch between GPU and NIC, PXB several, PHB the
host bridge both share, NODE several host bridges of one NUMA node, SYS across
NUMA nodes. nvidia-smi's relation comes first, the PCI tree's second; if they
differ, both are shown, with the known reasons.

Examples:
  gdrperf topo
  gdrperf topo --explain GPU0 mlx5_3
  lstopo --whole-io machine.xml && gdrperf topo --hwloc machine.xml --json
  gdrperf topo --nvidia-smi topo.txt --lspci lspci-tv.txt)";

constexpr const char* kNeither = "no GPU and no RDMA NIC";

/// The kinds of device, GPU and NIC, that a topology lacks; "" when it has both.
std::string absent_from(const topo::Topology& topology) {
  const std::size_t gpus = std::max(topology.matrix ? topology.matrix->gpus.size() : 0,
                                    topology.tree ? topology.tree->gpus.size() : 0);
  const std::size_t nics = std::max(topology.matrix ? topology.matrix->nics.size() : 0,
                                    topology.tree ? topology.tree->nics.size() : 0);
  if (gpus == 0 && nics == 0) return kNeither;
  if (gpus == 0) return "no GPU";
  return nics == 0 ? "no RDMA NIC" : "";
}

/// The file whose relations are shown first.
std::string file_of(const topo::TopologyFiles& files) {
  for (const topo::TopologyFormat& format : topo::topology_formats()) {
    const std::string& path = files.path(format.name);
    if (!path.empty()) return path == "-" ? "standard input" : path;
  }
  return {};
}

/// Errors begin with the option that named the file.
topo::Topology load(const topo::TopologyFiles& files) {
  try {
    return topo::load_topology(files);
  } catch (const Error& error) {
    for (const topo::TopologyFormat& format : topo::topology_formats()) {
      const std::string& path = files.path(format.name);
      if (!path.empty() && std::string_view(error.what()).starts_with(path))
        throw error.in(fmt::format("--{}", format.name));
    }
    throw;
  }
}

}  // namespace

void add_topology_files(CLI::App& command, topo::TopologyFiles& files) {
  for (const topo::TopologyFormat& format : topo::topology_formats()) {
    const std::string flag = fmt::format("--{}", format.name);
    command
        .add_option_function<std::string>(
            flag,
            [&files, flag, &format](const std::string& text) {
              if (text.empty()) throw usage_error(fmt::format("{}: needs a value", flag));
              files.set(format.name, text);
            },
            std::string(format.help))
        ->type_name(std::string(format.type))
        ->group("Recorded machines");
  }
}

void add_topo_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<TopoOptions>();
  CLI::App* command = app.add_subcommand(
      "topo", "Show GPU-NIC topology (PIX ... SYS) and each path's theoretical bandwidth");
  add_topology_files(*command, options->files);
  command->add_flag("-v,--verbose", options->verbose,
                    "Print every path, all relations and the best GPU of each NIC, too");
  add_json_option(*command, options->json, "Write JSON to FILE, or to standard output (no FILE, or -)");
  command->add_option("--explain", options->explain, "Print the path of one pair hop by hop")
      ->expected(2)
      ->type_name("GPU NIC");
  command->footer(kFooter);
  add_softnic_flag(*command);
  command->final_callback([options, &action] {
    action = [options](const Argv&) { return run_topo(*options, std::cout); };
  });
}

int run_topo(const TopoOptions& options, std::ostream& out) {
  const Sink json(options.json);
  json.check("--json");
  topo::Topology topology = load(options.files);
  if (!options.files.any()) declare_nics(topology, verbs::list_devices());
  const bool empty_tree =
      !topology.tree || (topology.tree->gpus.empty() && topology.tree->nics.empty());
  if (!options.files.any() && !topology.matrix && empty_tree) {
    throw Error(ExitCode::kEnvironment,
                topology.warnings.empty()
                    ? std::string("there is no nvidia-smi on the PATH of this machine, and no GPU "
                                  "or RDMA NIC on its PCI bus")
                    : topology.warnings.front(),
                "on the machine with the GPUs save the output of nvidia-smi topo -m, then give it "
                "with --nvidia-smi FILE");
  }
  const std::string absent = absent_from(topology);
  if (options.files.any() && absent == kNeither && !json.given()) {
    throw usage_error(fmt::format("{}: there is {}", file_of(options.files), absent),
                      "record the machine that has them: 'lstopo --whole-io FILE.xml', or save 'nvidia-smi topo -m'");
  }
  const std::string document =
      json.given() ? topology_json(topology).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n" : "";
  if (json.given() && !json.is_stdout()) json.write(document);
  std::ostringstream text;
  if (!options.explain.empty()) {
    explain_pair(topology, options.explain.at(0), options.explain.at(1), text);
  } else if (json.is_stdout()) {
    text << document;
  } else {
    print_topology(topology, options.verbose ? Rows::kAll : Rows::kAnswer,
                   &out == &std::cout ? terminal_columns(STDOUT_FILENO) : 0, text);
    if (!absent.empty()) text << fmt::format("\nThere is {} in it.\n", absent);
  }
  // Names come from recorded files.
  out << printable_lines(text.str());
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace gdrperf::app
