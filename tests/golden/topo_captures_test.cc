// Every capture under a folder, through the code of `gdrperf topo --json`:
// X.txt has to give X.expected.json (or be refused, where that file has
// "error" or "refusal_ok").
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "cmd_topo.h"
#include "gdrperf/base/error.h"

namespace fs = std::filesystem;
using gdrperf::Error;
using nlohmann::json;

namespace {

/// Empty when all is well, else what is wrong.
std::string check(const fs::path& capture, json expected) {
  const bool may_refuse = expected.contains("refusal_ok") || expected.contains("error");
  json accepted = expected.contains("error") ? expected.value("or", json()) : expected;
  if (accepted.is_object()) accepted.erase("refusal_ok");

  std::ostringstream out;
  try {
    const int code = gdrperf::app::run_topo({capture.string(), true}, out);
    if (code != 0) return "exit code " + std::to_string(code);
  } catch (const Error& error) {
    const std::string message = error.what();
    if (!may_refuse) return "refused: " + message;
    std::cout << "refused as it may be: " << message << '\n';
    if (error.code() != gdrperf::ExitCode::kUsage) return "refused, but not as a usage error";
    if (message.find(capture.string() + ":") == std::string::npos)
      return "no file and line in: " + message;
    if (message.size() > 400 || message.find('\n') != std::string::npos)
      return "not one short message";
    return {};
  }
  if (accepted.is_null())
    return "accepted, but it is to be refused: " + expected.value("error", "");
  const json got = json::parse(out.str());
  return got == accepted ? std::string() : "differs: " + json::diff(accepted, got).dump();
}

}  // namespace

int main(int argc, char** argv) {
  const fs::path folder = argc > 1 ? argv[1] : ".";
  if (!fs::is_directory(folder)) {
    std::cout << "skipped: there are no captures at " << folder << '\n';
    return 77;
  }
  std::vector<fs::path> captures;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") captures.push_back(entry.path());
  }
  std::sort(captures.begin(), captures.end());
  int wrong = 0;
  for (const fs::path& capture : captures) {
    fs::path expected = capture;
    expected.replace_extension(".expected.json");
    std::ifstream in(expected);
    const auto start = std::chrono::steady_clock::now();
    std::string problem =
        in ? check(capture, json::parse(in)) : "has no " + expected.filename().string();
    if (std::chrono::steady_clock::now() - start > std::chrono::seconds(10))
      problem += " took over 10 s";
    std::cout << (problem.empty() ? "ok   " : "FAIL ") << capture.filename().string() << ' '
              << problem << '\n';
    wrong += problem.empty() ? 0 : 1;
  }
  std::cout << captures.size() << " captures, " << wrong << " wrong\n";
  return wrong == 0 && !captures.empty() ? 0 : 1;
}
