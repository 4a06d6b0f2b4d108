// The tests, and what they and the ways to run them are called.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/proto/operation.h"
#include "gdrperf/proto/spec.h"

namespace gdrperf {
namespace {

enum class Wanted { kAll, kInSweep };

std::vector<Test> tests_of_operations(Wanted wanted) {
  std::vector<Test> tests;
  for (const OperationFacts& each : operations()) {
    if (wanted == Wanted::kInSweep && !each.in_sweep) continue;
    tests.push_back({each.operation, Metric::kBandwidth});
    tests.push_back({each.operation, Metric::kLatency});
  }
  return tests;
}

}  // namespace

std::string to_string(Test test) {
  return std::string(to_string(test.operation)) + (test.metric == Metric::kBandwidth ? "_bw" : "_lat");
}

std::string_view to_string(Operation operation) { return facts_of(operation).name; }

std::string_view to_string(Connector connector) {
  return connector == Connector::kRdmaCm ? "rdma_cm" : "exchange";
}

std::string_view to_string(Path path) { return path == Path::kStaged ? "staged" : "direct"; }

std::string_view to_string(Transport transport) {
  switch (transport) {
    case Transport::kUc: return "UC";
    case Transport::kUd: return "UD";
    case Transport::kXrc: return "XRC";
    case Transport::kDc: return "DC";
    case Transport::kSrd: return "SRD";
    case Transport::kRc: break;
  }
  return "RC";
}

std::optional<Test> parse_test(std::string_view name) {
  for (const Test test : all_tests()) {
    if (to_string(test) == name) return test;
  }
  return std::nullopt;
}

const std::vector<Test>& all_tests() {
  static const std::vector<Test> tests = tests_of_operations(Wanted::kAll);
  return tests;
}

const std::vector<Test>& default_tests() {
  static const std::vector<Test> tests = tests_of_operations(Wanted::kInSweep);
  return tests;
}

}  // namespace gdrperf
