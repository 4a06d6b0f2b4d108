#include "app/doctor/host.h"

#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/client/client.h"
#include "app/client/run_test.h"
#include "app/options/options.h"
#include "gdrperf/base/error.h"
#include "gdrperf/doctor/both_ends.h"

namespace gdrperf::app {
namespace {

using FactsJson = nlohmann::json;

constexpr std::uint64_t kProbeBytes = 1u << 20;
constexpr auto kProbeTime = std::chrono::milliseconds(300);
constexpr std::size_t kMostDevices = 256;
constexpr const char* kFacts = "doctor";

doctor::Facts facts_from_json(const std::string& text) {
  doctor::Facts facts;
  const FactsJson value = FactsJson::parse(text, nullptr, false);
  if (!value.is_object() || !value.contains(kFacts)) return facts;  // an older server
  const FactsJson& devices = value[kFacts];
  if (!devices.is_object() || devices.size() > kMostDevices)
    throw peer_error("the server's facts are no list of devices");
  for (const auto& [device, own] : devices.items()) {
    if (!own.is_object() || own.size() > kMostDevices) throw peer_error("the server's facts are no list of devices");
    for (const auto& [name, fact] : own.items()) {
      if (fact.is_string()) facts[device][name] = fact.get<std::string>();
    }
  }
  return facts;
}

struct Outcome {
  doctor::Probe probe;
  Outside here_device;
  Outside there_device;
};

Outcome run_probe(Client& client, const ClientOptions& options, Test test, std::string way) {
  ClientOptions short_run = options;
  short_run.spec.stop.duration = kProbeTime;
  client.open();
  const report::RunRecord record = run_test(client, spec_for(short_run, test, kProbeBytes));
  Outcome outcome{{std::move(way), 0, record.path.ceiling_gbps / 8, record.path.limited_by},
                  record.client.device,
                  record.server.device};
  if (record.measured.bandwidth) outcome.probe.gbytes = record.measured.bandwidth->median_gbytes;
  return outcome;
}

}  // namespace

std::string with_facts(const std::string& environment) {
  FactsJson value = FactsJson::parse(environment, nullptr, false);
  if (!value.is_object()) return environment;
  FactsJson& facts = value[kFacts] = FactsJson::object();
  for (const auto& [device, own] : doctor::facts_of(*doctor::this_machine())) {
    FactsJson& of_device = facts[device] = FactsJson::object();
    for (const auto& [name, fact] : own) of_device[name] = fact.raw();
  }
  return value.dump(-1, ' ', false, FactsJson::error_handler_t::replace);
}

doctor::Examination examine_both_ends(const DoctorOptions& options) {
  ClientOptions target;
  target.host = options.host;
  target.port = options.port;
  target.token = options.token;
  target.spec.client.device = options.device;
  target.spec.server.device = options.peer_device;
  const auto client = make_remote_client(server_address(target), [](const std::string& notice) {
    std::cerr << notice << std::endl;
  });
  doctor::BothEnds ends;
  ends.here = doctor::facts_of(*doctor::this_machine());
  std::vector<doctor::Probe> probes;
  for (const auto& [op, way] : {std::pair{Operation::kWrite, "to "}, std::pair{Operation::kRead, "from "}}) {
    const Outcome outcome = run_probe(*client, target, {op, Metric::kBandwidth}, way + options.host);
    ends.here_device = outcome.here_device;
    ends.there_device = outcome.there_device;
    probes.push_back(outcome.probe);
  }
  ends.there = facts_from_json(client->server_text());
  client->close();
  doctor::Examination examination;
  examination.findings = doctor::compare_ends(ends);
  for (doctor::Finding& finding : doctor::judge_probes(probes)) examination.findings.push_back(std::move(finding));
  return examination;
}

}  // namespace gdrperf::app
