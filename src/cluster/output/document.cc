#include <cmath>
#include <map>

#include <nlohmann/json.hpp>

#include "cluster/output/report.h"
#include "gdrperf/base/version.h"

namespace gdrperf::app {
namespace {

using Json = nlohmann::ordered_json;

double shift_percent(double shift) { return 100 * (std::exp(shift) - 1); }

Json effect_json(const cluster::NicEffect& effect) {
  if (effect.samples == 0) return nullptr;
  return {{"shift_percent", shift_percent(effect.shift)},
          {"ci95_low_percent", shift_percent(effect.low)},
          {"ci95_high_percent", shift_percent(effect.high)},
          {"measurements", effect.samples}};
}

Json ranks_json(const Star& star) {
  Json ranks = Json::array();
  for (std::size_t rank = 0; rank < star.members().size(); ++rank) {
    const Member& member = star.members()[rank];
    Json one = {{"rank", rank},
                {"host", member.card.host},
                {"address", member.address},
                {"node", member.card.node},
                {"devices", member.devices},
                {"leaf", member.card.leaf},
                {"pod", member.card.pod}};
    one["lost"] = member.lost.empty() ? Json(nullptr) : Json(member.lost);
    ranks.push_back(std::move(one));
  }
  return ranks;
}

// Switches that NICs hang on, and how many are on the shortest way between them.
Json hops_json(const ClusterResult& result) {
  constexpr std::size_t kMostInMatrix = 256;
  if (!result.hops.known()) return nullptr;
  Json between = nullptr;
  if (result.hops.switches.size() <= kMostInMatrix) {
    between = Json::array();
    for (const std::vector<int>& row : result.hops.between) {
      Json list = Json::array();
      for (const int hops : row) list.push_back(hops == 0 ? Json(nullptr) : Json(hops));
      between.push_back(std::move(list));
    }
  }
  Json measured = Json::array();
  const auto add = [&](const std::string& name, bool latency, const std::vector<cluster::Sample>& samples) {
    for (const HopGroup& group : by_hops(result.hops, samples)) {
      measured.push_back({{"series", name},
                          {"hops", group.hops},
                          {"measurements", group.measurements},
                          {"median", latency ? 1 / group.median : group.median}});
    }
  };
  add("bandwidth", false, result.samples);
  for (const Series& series : result.more) add(series.name, series.latency, series.samples);
  return {{"switches", result.hops.switches}, {"between", std::move(between)}, {"measured", std::move(measured)}};
}

Json switch_json(const Hops& hops, std::size_t nic) {
  const bool known = nic < hops.of_nic.size() && hops.of_nic[nic] >= 0;
  return known ? Json(hops.switches[static_cast<std::size_t>(hops.of_nic[nic])]) : Json(nullptr);
}

Json nics_json(const Star& star, const ClusterTest& test, const ClusterResult& result) {
  Json nics = Json::array();
  for (std::size_t id = 0; id < result.places.size(); ++id) {
    const NicPlace& place = result.places[id];
    const Member& member = star.members()[static_cast<std::size_t>(place.rank)];
    const bool measured = !result.judgement.sends.empty();
    nics.push_back({{"nic", id},
                    {"rank", place.rank},
                    {"host", member.card.host},
                    {"device", member.devices[place.device]},
                    {"rail", result.fabric.nics[id].rail},
                    {"switch", switch_json(result.hops, id)},
                    {"buffer", buffer_of(member, member.devices[place.device], test.buffer)},
                    {"sends", measured ? effect_json(result.judgement.sends[id]) : Json(nullptr)},
                    {"receives", measured ? effect_json(result.judgement.receives[id]) : Json(nullptr)}});
  }
  return nics;
}

void add_suspects(const ClusterResult& result, const cluster::Judgement& judgement, const std::string& series,
                  Json& suspects) {
  const auto rank_of = [&](const cluster::Suspect& suspect) -> Json {
    if (suspect.nic >= 0) return result.places[static_cast<std::size_t>(suspect.nic)].rank;
    for (std::size_t id = 0; suspect.node >= 0 && id < result.places.size(); ++id) {
      if (result.fabric.nics[id].node == suspect.node) return result.places[id].rank;
    }
    return nullptr;
  };
  const auto known = [](int value) { return value < 0 ? Json(nullptr) : Json(value); };
  for (const cluster::Suspect& suspect : judgement.suspects) {
    suspects.push_back(
        {{"series", series},
         {"part", cluster::to_string(suspect.part)},
         {"verdict", cluster::to_string(suspect.verdict)},
         {"when", cluster::to_string(suspect.when)},
         {"bad_share", suspect.when == cluster::When::kAlways
                           ? Json(nullptr)
                           : Json(suspect.retests == 0 ? suspect.bad_share : suspect.retest_bad_share)},
         {"rank", rank_of(suspect)},
         {"nic", known(suspect.nic)},
         {"peer_nic", known(suspect.peer)},
         {"rail", known(suspect.rail)},
         {"leaf", suspect.leaf < 0 ? Json(nullptr) : Json(result.leaves[static_cast<std::size_t>(suspect.leaf)])},
         {"pod", suspect.pod < 0 ? Json(nullptr) : Json(result.pods[static_cast<std::size_t>(suspect.pod)])},
         {"other", suspect.other < 0 ? Json(nullptr)
                                     : Json((suspect.pod < 0 ? result.leaves
                                                             : result.pods)[static_cast<std::size_t>(suspect.other)])},
         {"way", cluster::to_string(suspect.way)},
         {"shift_percent", shift_percent(suspect.shift)},
         {"sigmas", suspect.sigmas},
         {"measurements", suspect.samples},
         {"retest_shift_percent", suspect.retests == 0 ? Json(nullptr) : Json(shift_percent(suspect.retest_shift))},
         {"retests", suspect.retests}});
  }
}

Json suspects_json(const ClusterResult& result) {
  Json suspects = Json::array();
  add_suspects(result, result.judgement, "bandwidth", suspects);
  for (const Series& series : result.more) add_suspects(result, series.judgement, series.name, suspects);
  return suspects;
}

Json samples_json(const std::vector<cluster::Sample>& samples) {
  Json list = Json::array();
  for (const cluster::Sample& sample : samples) list.push_back({sample.from, sample.to, sample.gbytes});
  return list;
}

// Measurements so far at the end of each moment: their order in the document is that of the rounds.
Json moments_json(const std::vector<cluster::Sample>& samples) {
  Json ends = Json::array();
  std::uint32_t moment = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (; moment < samples[i].moment; ++moment) ends.push_back(i);
  }
  ends.push_back(samples.size());
  return ends;
}

Json more_json(const ClusterTest& test, const ClusterResult& result, const std::string& measurements_file) {
  Json more = Json::array();
  for (const Series& series : result.more) {
    const double typical = series.judgement.typical_gbytes;
    const bool beside = !measurements_file.empty();
    more.push_back({{"series", series.name},
                    {"test", !series.latency ? "write_bw" : test.event ? "send_lat" : "write_lat"},
                    {"size_bytes", series.size_bytes},
                    {"unit", series.latency ? "1/us" : "GB/s"},
                    {"typical", series.latency && typical > 0 ? 1 / typical : typical},
                    {"nic_sigma_percent", 100 * series.judgement.nic_sigma},
                    {"pair_sigma_percent", 100 * series.judgement.pair_sigma},
                    {"measurements_file", beside ? Json(series_file(measurements_file, series)) : Json(nullptr)},
                    {"measurements", beside ? Json::array() : samples_json(series.samples)},
                    {"moment_ends", moments_json(series.samples)},
                    {"retests", samples_json(series.retests)}});
  }
  return more;
}

Json inspections_json(const ClusterResult& result) {
  Json list = Json::array();
  const auto known = [](double rate) { return rate > 0 ? Json(rate) : Json(nullptr); };
  for (const Inspection& one : result.inspections) {
    list.push_back({{"nic", one.nic},
                    {"loopback_gbytes", known(one.loopback_gbytes)},
                    {"other_nic", one.other < 0 ? Json(nullptr) : Json(one.other)},
                    {"other_loopback_gbytes", known(one.other_gbytes)},
                    {"has_counters", one.has_counters},
                    {"counters_that_rose", one.rose}});
  }
  return list;
}

Json losses_json(const ClusterResult& result) {
  Json list = Json::array();
  for (const Losses& one : result.losses)
    list.push_back({{"nic", one.nic}, {"counters_that_rose", one.rose}, {"sum", one.sum}, {"others", one.others}});
  return list;
}

Json unexpected_json(const ClusterResult& result) {
  Json list = Json::array();
  for (const Unexpected& one : result.unexpected) list.push_back({{"rank", one.rank}, {"what", one.what}});
  return list;
}

Json patterns_json(const ClusterResult& result) {
  Json list = Json::array();
  for (const PatternStep& one : result.patterns) {
    list.push_back({{"pattern", one.pattern},
                    {"step", one.label},
                    {"flows", one.flows},
                    {"failed", one.failed},
                    {"sum_gbytes", one.sum_gbytes},
                    {"least_gbytes", one.least_gbytes},
                    {"median_gbytes", one.median_gbytes},
                    {"most_gbytes", one.most_gbytes},
                    {"victim_gbytes", one.victim_gbytes > 0 ? Json(one.victim_gbytes) : Json(nullptr)},
                    {"share_of_pairs", one.share_of_pairs > 0 ? Json(one.share_of_pairs) : Json(nullptr)},
                    {"slowest_nic", one.slowest < 0 ? Json(nullptr) : Json(one.slowest)},
                    {"slowest_share", one.slowest < 0 ? Json(nullptr) : Json(one.slowest_share)}});
  }
  return list;
}

Json collectives_json(const ClusterResult& result) {
  Json list = Json::array();
  for (const CollectiveStep& one : result.collectives) {
    const auto known = [](double value) { return value > 0 ? Json(value) : Json(nullptr); };
    list.push_back({{"step", one.label},
                    {"library", one.library},
                    {"size_bytes", one.size_bytes},
                    {"gpus", one.gpus},
                    {"hosts", one.hosts},
                    {"seconds", known(one.seconds)},
                    {"bus_gbytes", known(one.bus_gbytes)},
                    {"share_of_pairs", known(one.share_of_pairs)},
                    {"failed", one.failed}});
  }
  return list;
}

const char* verdict_name(ExitCode code) {
  if (code == ExitCode::kOk) return "fine";
  return code == ExitCode::kRegression ? "slow" : "inconclusive";
}

}  // namespace

std::string series_file(const std::string& measurements_file, const Series& series) {
  return measurements_file + "." + series.name;
}

std::string cluster_document(const Star& star, const cluster::Launch& launch, const ClusterTest& test,
                             const ClusterResult& result, const std::string& started,
                             const std::string& measurements_file) {
  Json failed = Json::array();
  for (const FailedRun& run : result.failed) failed.push_back({{"from", run.from}, {"to", run.to}, {"why", run.why}});
  const Json document = {
      {"schema", "gdrperf-cluster/1"},
      {"tool", {{"version", tool_version()}, {"git", tool_git()}}},
      {"started", started},
      {"launcher", launch.origin},
      {"verdict", verdict_name(verdict_of(star, test, result))},
      {"partial", result.partial},
      {"test",
       {{"test", "write_bw"},
        {"size_bytes", test.size_bytes},
        {"small_bytes", test.small_bytes},
        {"buffer", to_string(test.buffer)},
        {"duration_s", std::chrono::duration<double>(test.duration).count()},
        {"rounds", result.rounds},
        {"rounds_done", result.rounds_done},
        {"seed", test.schedule.seed},
        {"matchings", test.schedule.matchings},
        {"start_s", result.start_seconds},
        {"seconds", result.seconds},
        {"runs_per_round", runs_per_round(test)},
        {"seconds_per_round",
         result.rounds_timed == 0 ? 0.0 : result.round_seconds / static_cast<double>(result.rounds_timed)}}},
      {"typical_gbytes", result.judgement.typical_gbytes},
      {"nic_sigma_percent", 100 * result.judgement.nic_sigma},
      {"pair_sigma_percent", 100 * result.judgement.pair_sigma},
      {"slow_share", result.judgement.slow_share},
      {"suspects", suspects_json(result)},
      {"patterns", patterns_json(result)},
      {"collectives", collectives_json(result)},
      {"inspections", inspections_json(result)},
      {"losses", losses_json(result)},
      {"unexpected", unexpected_json(result)},
      {"ranks", ranks_json(star)},
      {"nics", nics_json(star, test, result)},
      {"hops", hops_json(result)},
      {"differences", differences(star.members())},
      {"failed", std::move(failed)},
      {"measurements_file", measurements_file.empty() ? Json(nullptr) : Json(measurements_file)},
      {"measurements", measurements_file.empty() ? samples_json(result.samples) : Json::array()},
      {"moment_ends", moments_json(result.samples)},
      {"retests", samples_json(result.retests)},
      {"more", more_json(test, result, measurements_file)}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gdrperf::app
