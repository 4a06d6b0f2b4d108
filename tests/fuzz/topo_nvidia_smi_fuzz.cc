// Any text either gives a matrix that is whole, or is refused as a usage error
// with one short message.
#include <cstdlib>
#include <set>
#include <string>

#include "fuzz.h"
#include "gdrperf/base/error.h"
#include "gdrperf/topo/nvidia_smi.h"

namespace {

using gdrperf::topo::Matrix;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_block(const std::vector<std::vector<std::string>>& block, std::size_t rows,
                 std::size_t columns, bool gaps) {
  require(block.size() == rows);
  for (const auto& row : block) {
    require(row.size() == columns);
    for (const std::string& cell : row) {
      const bool nvlink = cell.size() > 2 && cell.compare(0, 2, "NV") == 0;
      require(cell == "X" || nvlink || (gaps && cell.empty()) ||
              gdrperf::topo::relation_from_token(cell).has_value());
    }
  }
}

void check_column(const Matrix::Column& column, std::size_t gpus) {
  if (!column) return;
  require(column->size() == gpus);
  for (const gdrperf::Outside& value : *column) {
    for (const char c : value.raw()) require(c >= ' ' && c <= '~');
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const Matrix matrix = gdrperf::topo::parse_nvidia_smi(text, "input");
    require(!matrix.gpus.empty() && matrix.gpus.size() + matrix.nics.size() <= 512);
    check_block(matrix.gpu_gpu, matrix.gpus.size(), matrix.gpus.size(), false);
    check_block(matrix.gpu_nic, matrix.gpus.size(), matrix.nics.size(), false);
    check_block(matrix.nic_nic, matrix.nics.size(), matrix.nics.size(), true);
    check_column(matrix.cpu_affinity, matrix.gpus.size());
    check_column(matrix.numa_affinity, matrix.gpus.size());
    check_column(matrix.gpu_numa_id, matrix.gpus.size());
    // As many pairs as cells: each has a relation, and no two GPUs or NICs share a name.
    std::set<std::string> pairs;
    for (std::size_t g = 0; g < matrix.gpus.size(); ++g) {
      for (std::size_t n = 0; n < matrix.nics.size(); ++n) {
        require(gdrperf::topo::relation_from_token(matrix.gpu_nic[g][n]).has_value());
        pairs.insert(matrix.gpus[g] + "/" + matrix.nics[n].name.raw());
      }
    }
    require(pairs.size() == matrix.gpus.size() * matrix.nics.size());
  } catch (const gdrperf::Error& error) {
    const std::string message = error.what();
    require(error.code() == gdrperf::ExitCode::kUsage && message.size() < 400);
    for (const char c : message) require(c >= ' ' && c <= '~');
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
      "GPU0\t X \tNV4\tPIX\tSYS\t0-7\t0\t\tN/A\nGPU1\tNV4\t X \tNODE\tPHB\t8-15\t1\t\tN/A\n"
      "NIC0\tPIX\tNODE\t X \tPXB\t\t\t\t\nNIC1\tSYS\tPHB\tPXB\t X \t\t\t\t\n\nLegend:\n\n"
      "  X    = Self\n\nNIC Legend:\n\n  NIC0: mlx5_3\n  NIC1: mlx5_7\n",
      "$ nvidia-smi topo -m\n\t\x1b[4mGPU0\tmlx5_0\tCPU Affinity\x1b[0m\r\nGPU0\t X \tSOC\t0-7\r\n",
      "        GPU0    GPU1    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
      "GPU0     X      SYS     8-11,24-27      1               N/A\n"
      "GPU1    SYS      X                      0               N/A\n",
      "a.txt:# \tGPU0\tGPU1\na.txt:# GPU0\t X \tPIX\na.txt:# GPU1\tPIX\t X \n",
  };
}
