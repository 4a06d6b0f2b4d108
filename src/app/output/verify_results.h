#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/spec.h"
#include "gdrperf/report/document.h"

namespace gdrperf::app {

enum class VerifyVerdict { kPassed, kFailed, kImpossible };

/// One test between two ends, over all sizes or up to the one that failed.
struct VerifyRow {
  std::string title;  ///< "host to cuda:0"
  EndSpec client;
  EndSpec server;
  Test test;
  VerifyVerdict verdict = VerifyVerdict::kPassed;
  std::vector<std::uint64_t> sizes_bytes;  ///< passed
  std::uint64_t messages = 0;
  std::uint64_t failed_size_bytes = 0;     ///< 0: none
  std::string reason;                      ///< in words where it did not pass
  std::string hint;
};

/// Output of `gdrperf verify --json` (results/verify-schema.json), with a newline.
std::string verify_json(const std::vector<VerifyRow>& rows, const report::Tool& tool, const std::string& started,
                        const std::optional<report::Environment>& server, ExitCode exit_code);

}  // namespace gdrperf::app
