#include "gdrperf/topo/matrix.h"
#include "gdrperf/topo/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "../../temporary_folder.h"
#include "gdrperf/base/error.h"
#include "gdrperf/topo/nvidia_smi.h"

namespace gdrperf::topo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr const char* kCapture =
    "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV4\tPIX\tSOC\t0-7\t0\t\tN/A\n"
    "GPU1\tNV4\t X \tNODE\tPHB\t8-15\t1\t\tN/A\n"
    "NIC0\tPIX\tNODE\t X \tPXB\t\t\t\t\n"
    "\n"
    "NIC Legend:\n\n  NIC0: mlx5_3\n  NIC1: mlx5_7\n";

TEST(Relation, FromTokens) {
  EXPECT_EQ(relation_from_token("PIX"), Relation::kPix);
  EXPECT_EQ(relation_from_token("SYS"), Relation::kSys);
  EXPECT_EQ(relation_from_token("SOC"), Relation::kSys);
  for (const char* none : {"X", "NV4", "", "pix", "PIXX"})
    EXPECT_FALSE(relation_from_token(none)) << none;
  for (const Relation relation :
       {Relation::kPix, Relation::kPxb, Relation::kPhb, Relation::kNode, Relation::kSys}) {
    EXPECT_EQ(relation_from_token(to_string(relation)), relation);
  }
}

std::map<std::string, Relation> relations_of(const Matrix& matrix) {
  Topology topology;
  topology.matrix = matrix;
  std::map<std::string, Relation> relations;
  for (const topo::Pair& pair : pairs_of(topology))
    relations.emplace(pair.gpu + "/" + pair.nic.raw(), pair.relation.value());
  return relations;
}

TEST(Matrix, PairsHaveTheNamesOfTheLegend) {
  EXPECT_THAT(relations_of(parse_nvidia_smi(kCapture, "capture")),
              ElementsAre(Pair("GPU0/mlx5_3", Relation::kPix), Pair("GPU0/mlx5_7", Relation::kSys),
                          Pair("GPU1/mlx5_3", Relation::kNode), Pair("GPU1/mlx5_7", Relation::kPhb)));
}

std::vector<std::string> gpus_for(const Topology& topology, const std::vector<std::string>& nics) {
  const std::vector<topo::Pair> pairs = pairs_of(topology);
  std::vector<std::string> text;
  for (const NicGpu& each : gpus_of_nics(topology, pairs, nics))
    text.push_back(each.pair ? pairs[*each.pair].gpu + (each.shared ? " shared" : "") : "none");
  return text;
}

TEST(Matrix, EachNicHasAGpuOfItsOwnWhileThereAreAsMany) {
  Topology topology;
  topology.matrix = parse_nvidia_smi(kCapture, "capture");
  EXPECT_THAT(gpus_for(topology, {"mlx5_3", "mlx5_7"}), ElementsAre("GPU0", "GPU1"));
  EXPECT_THAT(gpus_for(topology, {"mlx5_7", "mlx5_3"}), ElementsAre("GPU1", "GPU0"));
  EXPECT_THAT(gpus_for(topology, {"mlx5_7"}), ElementsAre("GPU1"));
  EXPECT_THAT(gpus_for(topology, {"mlx5_3", "mlx5_3", "mlx5_7"}), ElementsAre("GPU0", "GPU0 shared", "GPU1"))
      << "fewer GPUs than NICs";
  EXPECT_THAT(gpus_for(topology, {"mlx5_3", "soft0"}), ElementsAre("GPU0", "none"));
}

TEST(Matrix, KeepsCellsAsPrinted) {
  const Matrix matrix = parse_nvidia_smi(kCapture, "capture");
  EXPECT_THAT(matrix.gpu_gpu[0], ElementsAre("X", "NV4"));
  EXPECT_THAT(matrix.gpu_nic[0], ElementsAre("PIX", "SOC"));
  // NIC1 has no row: the other half of NIC0's row is all that is known.
  EXPECT_THAT(matrix.nic_nic[1], ElementsAre("PXB", "X"));
  EXPECT_THAT(*matrix.cpu_affinity, ElementsAre("0-7", "8-15"));
  EXPECT_THAT(*matrix.gpu_numa_id, ElementsAre("N/A", "N/A"));
}

std::string refusal(const std::string& text) {
  try {
    parse_nvidia_smi(text, "capture");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    const std::string message = error.what();
    EXPECT_LT(message.size(), 400u) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }
  return "accepted";
}

TEST(NvidiaSmiText, HeadingsThatRanTogetherAreRead) {
  std::string text = kCapture;
  text.replace(text.find("NIC0\tNIC1\tCPU Affinity"), 22, "NIC0NIC1CPU Affinity");
  const Matrix matrix = parse_nvidia_smi(text, "capture");
  EXPECT_EQ(relations_of(matrix).at("GPU1/mlx5_7"), Relation::kPhb);
  EXPECT_THAT(*matrix.cpu_affinity, ElementsAre("0-7", "8-15"));
}

TEST(NvidiaSmiText, ThirtySixNicsWhoseHeadingsRanTogetherAreRead) {
  std::string text = "\tGPU0", row = "GPU0\t X ", legend;
  for (int nic = 0; nic < 36; ++nic) {
    const std::string number = std::to_string(nic);
    text += (nic < 8 ? "\tNIC" : "NIC") + number;
    row += nic == 35 ? "\tPIX" : "\tSYS";
    legend += "  NIC" + number + ": mlx5_" + number + "\n";
  }
  const Matrix matrix =
      parse_nvidia_smi(text + "CPU Affinity\n" + row + "\t0-7\n\nNIC Legend:\n\n" + legend, "capture");
  ASSERT_EQ(matrix.nics.size(), 36u);
  EXPECT_EQ(relations_of(matrix).at("GPU0/mlx5_34"), Relation::kSys);
  EXPECT_EQ(relations_of(matrix).at("GPU0/mlx5_35"), Relation::kPix);
  EXPECT_THAT(*matrix.cpu_affinity, ElementsAre("0-7"));
}

TEST(NvidiaSmiText, TwoNicsOnOneLineOfTheLegendAreRead) {
  std::string text = kCapture;
  text.replace(text.find("mlx5_3\n"), 7, "mlx5_3 ");
  const Matrix matrix = parse_nvidia_smi(text, "capture");
  EXPECT_EQ(relations_of(matrix).at("GPU0/mlx5_3"), Relation::kPix);
  EXPECT_EQ(relations_of(matrix).at("GPU0/mlx5_7"), Relation::kSys);
}

TEST(NvidiaSmiText, ACutPasteIsCalledThat) {
  const std::string text = kCapture;
  const std::string in_row = text.substr(0, text.find("NODE\tPHB"));
  const std::string in_cell = text.substr(0, text.find("NODE\tPHB") + 2);
  const std::string after_row = text.substr(0, text.find("GPU1\tNV4"));
  for (const std::string& cut : {in_row, in_cell, after_row}) {
    EXPECT_THAT(refusal(cut), HasSubstr("the text ends here, so it was cut off")) << cut;
  }
  EXPECT_THAT(refusal(text.substr(0, text.find("\tPHB")) + "\n" + text.substr(text.find("NIC0\tPIX"))),
              testing::Not(HasSubstr("cut off")));
}

TEST(NvidiaSmiText, MessagesNameLineAndColumn) {
  EXPECT_THAT(refusal("\n\tGPU0\tGPU1\nGPU0\t X \tFOO\nGPU1\tFOO\t X \n"),
              HasSubstr("capture:3:10: row GPU0, "));
  EXPECT_THAT(refusal("# \tGPU0\tGPU1\n# GPU0\t X \tPIX\n# GPU1\tSYS\t X \n"),
              HasSubstr("capture:3:8: GPU1 to GPU0"));
  EXPECT_THAT(refusal("x\nNo devices were found\n"),
              HasSubstr("capture:2: no topology matrix: nvidia-smi found no GPU"));
}

// Seconds of a build without optimization.
#ifdef __OPTIMIZE__
constexpr int kMany = 1'000'000;
#else
constexpr int kMany = 200'000;
#endif

TEST(NvidiaSmiText, HostileSizesAreRefusedOrTakenInOneGo) {
  const std::string mebibytes(8 * kMany, 'A');
  refusal(mebibytes);
  refusal("\tGPU0\tGPU1\nGPU0\t X \t" + mebibytes + "\n");
  EXPECT_THAT(refusal("\tGPU0\tGPU1\nGPU0\t X \tPIX\t" + mebibytes + "\n"),
              HasSubstr("bytes long"));
  refusal(std::string(4 * kMany, '\n'));
  refusal(std::string(1u << 20, '\0'));
  std::string columns;
  for (int i = 0; i < kMany; ++i) columns += "\tGPU" + std::to_string(i);
  EXPECT_THAT(refusal(columns + "\nGPU0\t X \n"), HasSubstr("more than 2048 device columns"));
  std::string cells = "\tGPU0\tGPU1\nGPU0\t X \tPIX";
  for (int i = 0; i < kMany; ++i) cells += "\tPIX";
  EXPECT_THAT(refusal(cells), HasSubstr("more cells than the 2 device columns"));
  // Many half-headers, each of which makes the parser look ahead.
  std::string headers;
  for (int i = 0; i < kMany / 3; ++i) headers += "GPU0 GPU1\nGPU0 X OK\n";
  EXPECT_THAT(refusal(headers), HasSubstr("-p2p"));
  std::string escapes;
  for (int i = 0; i < kMany; ++i) escapes += "\x1b]\x1b[";
  refusal(escapes);
  std::string prefixes;
  for (int i = 0; i < kMany / 10; ++i) prefixes += "# GPU0 GPU1 x\n";
  refusal(prefixes);
}

TEST(NvidiaSmiText, A512DeviceMatrixIsRead) {
  constexpr int kDevices = 512;
  std::string text;
  for (int i = 0; i < kDevices; ++i) text += "\tGPU" + std::to_string(i);
  for (int row = 0; row < kDevices; ++row) {
    text += "\nGPU" + std::to_string(row);
    for (int i = 0; i < kDevices; ++i) text += i == row ? "\t X " : "\tSYS";
  }
  EXPECT_EQ(parse_nvidia_smi(text, "capture").gpus.size(), 512u);
}

/// A folder that stands alone on the PATH, with or without an `nvidia-smi`.
class NvidiaSmi : public testing::Test {
 protected:
  NvidiaSmi() : path_(std::getenv("PATH")) { ::setenv("PATH", folder_.c_str(), 1); }
  ~NvidiaSmi() override { ::setenv("PATH", path_.c_str(), 1); }
  void install(const std::string& script) {
    const std::filesystem::path program = folder_ / "nvidia-smi";
    std::ofstream(program) << "#!/bin/sh\nPATH=/usr/bin:/bin\n" << script;
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  }
  std::string path_;
  TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};

TEST_F(NvidiaSmi, WhereThereIsNoneNothingIsWrong) {
  EXPECT_FALSE(run_nvidia_smi());
  const Topology topology = load_topology();
  EXPECT_NE(topology.source, "nvidia-smi");
  EXPECT_FALSE(topology.matrix);
  EXPECT_TRUE(topology.warnings.empty());
}

TEST_F(NvidiaSmi, ItsOutputIsRead) {
  install("[ \"$1 $2\" = 'topo -m' ] || exit 9\nprintf '\\tGPU0\\tmlx5_0\\nGPU0\\t X \\tPXB\\n'\n");
  const Topology topology = load_topology();
  EXPECT_EQ(topology.source, "nvidia-smi");
  ASSERT_TRUE(topology.matrix);
  EXPECT_EQ(relations_of(*topology.matrix).at("GPU0/mlx5_0"), Relation::kPxb);
}

TEST_F(NvidiaSmi, ItsFailureIsTold) {
  install("echo 'NVIDIA-SMI has failed because' >&2\nexit 9\n");
  try {
    run_nvidia_smi();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kEnvironment);
    EXPECT_STREQ(error.what(),
                 "nvidia-smi topo -m failed (exit status 9): NVIDIA-SMI has failed because");
  }
  const Topology topology = load_topology();
  EXPECT_NE(topology.source, "nvidia-smi");
  EXPECT_THAT(topology.warnings, ElementsAre(HasSubstr("NVIDIA-SMI has failed")));
}

TEST_F(NvidiaSmi, WhatHangsOrFloodsIsStopped) {
  install("sleep 100\n");
  EXPECT_THROW(run_nvidia_smi(std::chrono::milliseconds(50)), Error);
  install("exec >&- 2>&-\nsleep 100\n");
  EXPECT_THROW(run_nvidia_smi(std::chrono::milliseconds(50)), Error);
  install("yes\n");
  EXPECT_THROW(run_nvidia_smi(), Error);
}

TEST_F(NvidiaSmi, AFileComesFirst) {
  install("exit 1\n");
  const std::filesystem::path file = folder_ / "capture.txt";
  std::ofstream(file) << kCapture;
  const Topology topology = load_topology({{"nvidia-smi", file}});
  EXPECT_EQ(topology.source, "file");
  EXPECT_EQ(topology.matrix->nics.size(), 2u);
  EXPECT_THROW(load_topology({{"nvidia-smi", folder_ / "absent.txt"}}), Error);
}

}  // namespace
}  // namespace gdrperf::topo
