#include "cmd_topo.h"

#include <algorithm>
#include <ostream>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gdrperf/base/error.h"
#include "gdrperf/topo/matrix.h"
#include "gdrperf/topo/nvidia_smi.h"
#include "table.h"

namespace gdrperf::app {
namespace {

using Json = nlohmann::ordered_json;
using topo::Matrix;

topo::Matrix matrix_of(const TopoOptions& options) {
  if (!options.nvidia_smi_file.empty()) return topo::read_nvidia_smi_file(options.nvidia_smi_file);
  const auto text = topo::run_nvidia_smi();
  if (!text) {
    throw Error(ExitCode::kEnvironment, "there is no nvidia-smi on the PATH of this machine",
                "on the machine with the GPUs save the output of nvidia-smi topo -m, then give it "
                "with --nvidia-smi FILE");
  }
  try {
    return topo::parse_nvidia_smi(*text, "nvidia-smi topo -m");
  } catch (const Error& error) {
    // Not what the user typed, so not a usage error.
    throw Error(ExitCode::kEnvironment, error.what(), error.hint());
  }
}

Json column_json(const Matrix& matrix, const Matrix::Column& column) {
  Json values = Json::object();
  for (std::size_t g = 0; column && g < matrix.gpus.size(); ++g)
    values[matrix.gpus[g]] = (*column)[g];
  return values;
}

Json to_json(const Matrix& matrix) {
  Json document = {{"gpus", matrix.gpus},
                   {"nics", Json::array()},
                   {"relations", Json::object()},
                   {"gpu_gpu", Json::object()}};
  for (const topo::Nic& nic : matrix.nics) {
    document["nics"].push_back({{"label", nic.label}, {"name", nic.name}});
  }
  for (std::size_t g = 0; g < matrix.gpus.size(); ++g) {
    Json to_nics = Json::object();
    for (std::size_t n = 0; n < matrix.nics.size(); ++n)
      to_nics[matrix.nics[n].name] = matrix.gpu_nic[g][n];
    Json to_gpus = Json::object();
    for (std::size_t other = 0; other < matrix.gpus.size(); ++other) {
      if (other != g) to_gpus[matrix.gpus[other]] = matrix.gpu_gpu[g][other];
    }
    document["relations"][matrix.gpus[g]] = std::move(to_nics);
    document["gpu_gpu"][matrix.gpus[g]] = std::move(to_gpus);
  }
  document["cpu_affinity"] = column_json(matrix, matrix.cpu_affinity);
  document["numa_affinity"] = column_json(matrix, matrix.numa_affinity);
  if (matrix.gpu_numa_id) document["gpu_numa_id"] = column_json(matrix, matrix.gpu_numa_id);
  return document;
}

/// As nvidia-smi prints it, with the names of the NICs in place of NIC0, ...
void print_table(const Matrix& matrix, std::ostream& out) {
  const std::vector<std::pair<const char*, const Matrix::Column*>> affinities = {
      {"CPU Affinity", &matrix.cpu_affinity},
      {"NUMA Affinity", &matrix.numa_affinity},
      {"GPU NUMA ID", &matrix.gpu_numa_id}};
  std::vector<std::string> header = {""};
  header.insert(header.end(), matrix.gpus.begin(), matrix.gpus.end());
  for (const topo::Nic& nic : matrix.nics) header.push_back(nic.name);
  for (const auto& [title, column] : affinities) {
    if (*column) header.emplace_back(title);
  }
  Table table(header);
  for (std::size_t g = 0; g < matrix.gpus.size(); ++g) {
    std::vector<std::string> row = {matrix.gpus[g]};
    row.insert(row.end(), matrix.gpu_gpu[g].begin(), matrix.gpu_gpu[g].end());
    row.insert(row.end(), matrix.gpu_nic[g].begin(), matrix.gpu_nic[g].end());
    for (const auto& [title, column] : affinities) {
      if (*column) row.push_back((**column)[g]);
    }
    table.add(std::move(row));
  }
  for (std::size_t n = 0; n < matrix.nics.size(); ++n) {
    std::vector<std::string> row = {matrix.nics[n].name};
    for (std::size_t g = 0; g < matrix.gpus.size(); ++g) row.push_back(matrix.gpu_nic[g][n]);
    row.insert(row.end(), matrix.nic_nic[n].begin(), matrix.nic_nic[n].end());
    table.add(std::move(row));
  }
  table.print(out);
}

}  // namespace

CLI::App* add_topo_command(CLI::App& app, TopoOptions& options) {
  CLI::App* command = app.add_subcommand(
      "topo", "Show how far each GPU is from each NIC (PIX, PXB, PHB, NODE, SYS)");
  command
      ->add_option("--nvidia-smi", options.nvidia_smi_file,
                   "Read the output of `nvidia-smi topo -m` from FILE (- for standard input) "
                   "instead of running it here")
      ->type_name("FILE");
  command->add_flag("--json", options.json, "Print JSON");
  return command;
}

int run_topo(const TopoOptions& options, std::ostream& out) {
  const Matrix matrix = matrix_of(options);
  if (options.json) {
    out << to_json(matrix).dump(2) << '\n';
  } else {
    print_table(matrix, out);
  }
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace gdrperf::app
