// Every capture under a folder, through the code of `gdrperf topo --json`:
// X.txt or X.xml has to give what X.expected.json has (or be refused, where
// that file has "error" or "refusal_ok"). Usage: topo_captures FOLDER KIND,
// KIND being nvidia-smi, hwloc, nccl-xml or lspci.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "app/topo/topo.h"
#include "gdrperf/base/error.h"

namespace fs = std::filesystem;
using gdrperf::Error;
using nlohmann::json;

namespace {

gdrperf::app::TopoOptions options_for(const fs::path& capture, const std::string& kind) {
  gdrperf::app::TopoOptions options;
  options.json = "-";
  options.files.set(kind, capture);
  return options;
}

json run(const gdrperf::app::TopoOptions& options) {
  std::ostringstream out;
  if (gdrperf::app::run_topo(options, out) != 0) throw std::runtime_error("exit code not 0");
  return json::parse(out.str());
}

/// Empty when `got` has all of `expected`: objects in lists may have further
/// members, tables must be the same.
std::string compare(const std::string& where, const json& expected, const json& got) {
  if (expected.is_array() && !expected.empty() && expected.front().is_object()) {
    if (!got.is_array() || got.size() != expected.size()) return where + ": another length";
    for (std::size_t i = 0; i < expected.size(); ++i) {
      for (const auto& [key, value] : expected[i].items()) {
        if (got[i].value(key, json("missing")) != value) {
          return where + "[" + std::to_string(i) + "]." + key + ": " +
                 got[i].value(key, json("missing")).dump() + ", not " + value.dump();
        }
      }
    }
    return {};
  }
  return got == expected ? std::string() : where + " differs: " + json::diff(expected, got).dump();
}

/// Tables of nvidia-smi's matrix that the same machine's `lspci -tv` must allow,
/// and that both together must agree on.
std::string check_lspci(const fs::path& capture, const json& expected) {
  gdrperf::app::TopoOptions options = options_for(capture, "lspci");
  const json tree = run(options);
  for (const auto& [label, place] : expected.at("devices").items()) {
    bool found = false;
    for (const char* list : {"gpus", "nics"}) {
      for (const json& device : tree.at(list)) {
        if (device.value("label", device.value("name", "")) != label) continue;
        found = device.at("busid") == place.at("busid") &&
                device.at("host_bridge") == place.at("root_bus");
      }
    }
    if (!found) return label + " is not where it should be";
  }
  const fs::path matrix = capture.parent_path().parent_path() /
                          expected.at("nvidia_smi_capture").get<std::string>();
  if (!fs::exists(matrix)) return {};
  options.files.set("nvidia-smi", matrix);
  const json both = run(options);
  if (!both.at("differences").empty()) return "they differ: " + both.at("differences").dump();
  return compare("relations", expected.at("relations").at("gpu_nic"), both.at("relations"));
}

std::string check_refusal(const Error& error, const fs::path& capture) {
  const std::string message = error.what();
  std::cout << "refused as it may be: " << message << '\n';
  if (error.code() != gdrperf::ExitCode::kUsage) return "refused, but not as a usage error";
  if (message.find(capture.string() + ":") == std::string::npos)
    return "no file and line in: " + message;
  if (message.size() > 400 || message.find('\n') != std::string::npos)
    return "not one short message";
  return {};
}

/// Empty when all is well, else what is wrong.
std::string check(const fs::path& capture, const std::string& kind, json expected) {
  const bool may_refuse = expected.contains("refusal_ok") || expected.contains("error");
  json accepted = expected.contains("error") ? expected.value("or", json()) : expected;
  json got;
  try {
    if (kind == "lspci") return check_lspci(capture, expected);
    got = run(options_for(capture, kind));
  } catch (const Error& error) {
    if (!may_refuse) return std::string("refused: ") + error.what();
    return check_refusal(error, capture);
  }
  if (accepted.is_null())
    return "accepted, but it is to be refused: " + expected.value("error", "");
  for (const char* about : {"refusal_ok", "computed"}) accepted.erase(about);
  for (const auto& [key, value] : accepted.items()) {
    if (!got.contains(key)) return "no " + key;
    if (const std::string problem = compare(key, value, got[key]); !problem.empty()) return problem;
  }
  // Facts that a driver did not print must not appear.
  if (kind == "nvidia-smi" && got.contains("gpu_numa_id") != accepted.contains("gpu_numa_id")) {
    return "gpu_numa_id out of nowhere";
  }
  return {};
}

fs::path expectation_of(const fs::path& capture) {
  std::string name = capture.filename().string();
  name = name.substr(0, name.find(name.ends_with(".lspci-tv.txt") ? ".lspci-tv.txt"
                                                                  : capture.extension().string()));
  return capture.parent_path() / (name + ".expected.json");
}

}  // namespace

int main(int argc, char** argv) {
  const fs::path folder = argc > 1 ? argv[1] : ".";
  const std::string kind = argc > 2 ? argv[2] : "nvidia-smi";
  if (!fs::is_directory(folder)) {
    std::cout << "skipped: there are no captures at " << folder << '\n';
    return 77;
  }
  std::vector<fs::path> captures;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto extension = entry.path().extension();
    if (extension == ".txt" || extension == ".xml") captures.push_back(entry.path());
  }
  std::sort(captures.begin(), captures.end());
  int wrong = 0;
  for (const fs::path& capture : captures) {
    const fs::path expected = expectation_of(capture);
    std::ifstream in(expected);
    const auto start = std::chrono::steady_clock::now();
    std::string problem =
        in ? check(capture, kind, json::parse(in)) : "has no " + expected.filename().string();
    if (std::chrono::steady_clock::now() - start > std::chrono::seconds(10))
      problem += " took over 10 s";
    std::cout << (problem.empty() ? "ok   " : "FAIL ") << capture.filename().string() << ' '
              << problem << '\n';
    wrong += problem.empty() ? 0 : 1;
  }
  std::cout << captures.size() << " captures, " << wrong << " wrong\n";
  return wrong == 0 && !captures.empty() ? 0 : 1;
}
