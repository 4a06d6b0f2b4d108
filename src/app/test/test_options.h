#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/options/options.h"
#include "app/test/perftest.h"

namespace gdrperf::app {

/// What was typed for one test.
struct TestOptions : ClientOptions {
  Test test;
  std::vector<std::uint64_t> sizes;  ///< -s; empty: the default
  std::vector<std::uint8_t> payload;  ///< of the client's messages; empty: zeros
  int blocks = 0;  ///< --blocks: messages of a list; 0: none
  bool all = false;
  double interval_s = 0;  ///< --interval; 0: none
  std::string listen_metrics;
  bool dry_run = false;            ///< say what would be run
  std::vector<std::string> given;  ///< options that a client decides
  std::vector<std::string> without_effect;
  PerftestTyped perftest;
};

/// Sizes to measure: those of -s or -a, or the default.
std::vector<std::uint64_t> sizes_of(const TestOptions& options);

/// Serves one client, whose options apply; returns the exit code.
int serve_one_client(const TestOptions& options);

/// Options typed on an end that serves but that its client decides.
std::vector<std::string> decided_by_client(const CLI::App& command);

}  // namespace gdrperf::app
