#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../temporary_folder.h"
#include "gdrperf/base/error.h"
#include "gdrperf/report/document.h"
#include "gdrperf/report/earlier_part.h"

namespace gdrperf::report {
namespace {

using testing::HasSubstr;

EndRecord end_with(const char* device, const char* buffer) {
  EndRecord end;
  end.device = device;
  end.kind = "hardware";
  end.port = 1;
  end.gid_type = "IB";
  end.buffer = buffer;
  return end;
}

/// A bandwidth run with little of what a run may have.
RunRecord plain_rate(std::uint64_t size, double gbytes) {
  RunRecord record;
  record.device_kind = "hardware";
  record.relation = "PIX";
  record.spec.size_bytes = size;
  record.client = end_with("mlx5_0", "cuda:0");
  record.client.gpu = GpuInfo{};
  record.server = end_with("mlx5_1", "host");
  record.measured.bandwidth = Bandwidth{};
  record.measured.bandwidth->median_gbytes = gbytes;
  record.measured.bandwidth->ci95_low_gbytes = gbytes * 0.99;
  record.measured.bandwidth->ci95_high_gbytes = gbytes * 1.01;
  return record;
}

RunRecord plain_latency(std::uint64_t size, double p50_ns) {
  RunRecord record = plain_rate(size, 1);
  record.spec.test.metric = Metric::kLatency;
  record.measured.bandwidth.reset();
  record.measured.latency = Latency{};
  record.measured.latency->p50_ns = p50_ns;
  record.measured.latency->ci95_p50_low_ns = p50_ns - 10;
  record.measured.latency->ci95_p50_high_ns = p50_ns + 20;
  return record;
}

Environment client_of_documents() {
  Environment environment;
  environment.hostname = "left";
  return environment;
}

Document document_of(const std::vector<RunRecord>& records) {
  Document document(Tool{"1.2", "abc", {"gdrperf", "sweep"}}, "2025-01-31T12:00:00Z");
  for (const RunRecord& record : records) document.add(record);
  return document;
}

/// From `key` of the document's head to the end of its value.
std::string part_of_text(const std::string& text, const std::string& key) {
  const std::size_t begin = text.find("\n  \"" + key + "\": ");
  if (begin == std::string::npos) return "";
  std::size_t end = text.find("\n  \"", begin + 1);
  if (end == std::string::npos) end = text.rfind("\n}");
  return text.substr(begin + 1, end - begin - 1);
}

TEST(DocumentText, WithoutRuns) {
  EXPECT_EQ(document_of({}).to_json(), R"({
  "schema": "gdrperf-results/1",
  "tool": {
    "version": "1.2",
    "git": "abc",
    "argv": ["gdrperf", "sweep"]
  },
  "started": "2025-01-31T12:00:00Z",
  "simulated": false,
  "hosts": {
    "client": null,
    "server": null
  },
  "topology": {
    "source": "none",
    "gpus": [],
    "nics": [],
    "pairs": {}
  },
  "relations": {},
  "warnings": []
}
)");
}

TEST(DocumentText, PartialImportedAndOfASimulatedMachine) {
  RunRecord record = plain_rate(64, 1);
  record.device_kind = "simulated";
  Document document = document_of({record});
  document.add_imported({"a.json", "perftest", 2});
  document.set_missing({"write_bw/HOST/a/64"});
  document.add_warning("slow");
  const std::string text = document.to_json();
  EXPECT_EQ(part_of_text(text, "simulated"), "  \"simulated\": true,");
  const std::size_t end = text.find("\n  \"imported\"");
  ASSERT_NE(end, std::string::npos);
  EXPECT_EQ(text.substr(end), R"(
  "imported": [
    {
      "file": "a.json",
      "format": "perftest",
      "runs": 2
    }
  ],
  "partial": true,
  "missing": ["write_bw/HOST/a/64"],
  "warnings": ["slow"]
}
)");
  for (const char* key : {"paths", "orderings", "initiators", "gpu_initiators"})
    EXPECT_EQ(part_of_text(text, key), "") << key;
}

TEST(DocumentText, StandardOutputGetsTheSameAsAFile) {
  const Document document = document_of({plain_rate(64, 1)});
  testing::internal::CaptureStdout();
  document.write("-");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), document.to_json());
}

/// Direct and staged, relaxed and strict, by the CPU and by GPUs, of rates and of latencies.
std::vector<RunRecord> every_way() {
  std::vector<RunRecord> records;
  const auto add = [&](RunRecord record, auto change) {
    change(record);
    records.push_back(record);
  };
  for (const std::uint64_t size : {4096u, 65536u, 1u << 20}) {
    for (const Path path : {Path::kDirect, Path::kStaged}) {
      if (size == 65536 && path == Path::kStaged) continue;
      add(plain_rate(size, path == Path::kStaged && size > 65536 ? 20 : 10 + static_cast<double>(size % 7)),
          [&](RunRecord& run) { run.spec.path = path; });
      add(plain_latency(size, path == Path::kStaged ? 5000 : 2000), [&](RunRecord& run) { run.spec.path = path; });
    }
    for (const Ordering ordering : {Ordering::kRelaxed, Ordering::kStrict}) {
      if (size == 65536 && ordering == Ordering::kStrict) continue;
      add(plain_rate(size, ordering == Ordering::kStrict ? 20 : 30), [&](RunRecord& run) {
        run.spec.ordering = ordering;
        run.server = end_with("mlx5_2", "host");
        run.measured.unstable = size == 4096;
      });
    }
  }
  for (const Initiator initiator : {Initiator::kGpu, Initiator::kGpuProxy, Initiator::kCpu, Initiator::kCpuRings}) {
    add(plain_latency(8, 1000 * (1 + static_cast<double>(initiator))),
        [&](RunRecord& run) { run.spec.initiator = initiator; });
  }
  add(plain_rate(64, 3), [](RunRecord& run) { run.spec.consume = true; });
  add(plain_rate(64, 4), [](RunRecord& run) { run.spec.consume = true, run.spec.path = Path::kStaged; });
  return records;
}

constexpr const char* kPathsText = R"(  "paths": [
    {
      "op": "write_bw",
      "client": "mlx5_0 cuda:0",
      "server": "mlx5_1 host",
      "relation": "PIX",
      "better": "direct below 1 MiB, staged from there on",
      "crossover_bytes": 1048576,
      "sizes": [
        {
          "size_bytes": 4096,
          "direct_gbps": 88.0,
          "staged_gbps": 88.0,
          "staged_over_direct": 1.0,
          "unstable": false
        },
        {
          "size_bytes": 1048576,
          "direct_gbps": 112.0,
          "staged_gbps": 160.0,
          "staged_over_direct": 1.428571,
          "unstable": false
        }
      ]
    },
    {
      "op": "write_lat",
      "client": "mlx5_0 cuda:0",
      "server": "mlx5_1 host",
      "relation": "PIX",
      "better": "direct at every size",
      "crossover_bytes": null,
      "sizes": [
        {
          "size_bytes": 4096,
          "direct_p50_ns": 2000.0,
          "staged_p50_ns": 5000.0,
          "staged_over_direct": 0.4,
          "unstable": false
        },
        {
          "size_bytes": 1048576,
          "direct_p50_ns": 2000.0,
          "staged_p50_ns": 5000.0,
          "staged_over_direct": 0.4,
          "unstable": false
        }
      ]
    }
  ],)";

constexpr const char* kOrderingsText = R"(  "orderings": [
    {
      "op": "write_bw",
      "client": "mlx5_0 cuda:0",
      "server": "mlx5_2 host",
      "relation": "PIX",
      "worth": "relaxed ordering is worth +50 % at 1 MiB of the rate",
      "sizes": [
        {
          "size_bytes": 4096,
          "relaxed_gbps": 240.0,
          "strict_gbps": 160.0,
          "relaxed_over_strict": 1.5,
          "differ": false,
          "unstable": true
        },
        {
          "size_bytes": 1048576,
          "relaxed_gbps": 240.0,
          "strict_gbps": 160.0,
          "relaxed_over_strict": 1.5,
          "differ": true,
          "unstable": false
        }
      ]
    }
  ],)";

constexpr const char* kInitiatorsText = R"(  "initiators": [
    {
      "op": "write_lat",
      "client": "mlx5_0 cuda:0",
      "server": "mlx5_1 host",
      "relation": "PIX",
      "worth": "gpu-proxy is worth -50 % at 8 B of the inverse latency",
      "sizes": [
        {
          "size_bytes": 8,
          "gpu_proxy_p50_ns": 2000.0,
          "cpu_p50_ns": 1000.0,
          "gpu_proxy_over_cpu": 0.5,
          "differ": true,
          "unstable": false
        }
      ]
    }
  ],)";

constexpr const char* kGpuInitiatorsText = R"(  "gpu_initiators": [
    {
      "op": "write_lat",
      "client": "mlx5_0 cuda:0",
      "server": "mlx5_1 host",
      "relation": "PIX",
      "worth": "gpu is worth -67 % at 8 B of the inverse latency",
      "sizes": [
        {
          "size_bytes": 8,
          "gpu_p50_ns": 3000.0,
          "cpu_p50_ns": 1000.0,
          "gpu_over_cpu": 0.3333333,
          "differ": true,
          "unstable": false
        }
      ]
    }
  ],)";

TEST(DocumentText, VerdictsHaveListsOfTheirOwn) {
  const std::string text = document_of(every_way()).to_json();
  EXPECT_EQ(part_of_text(text, "paths"), kPathsText);
  EXPECT_EQ(part_of_text(text, "orderings"), kOrderingsText);
  EXPECT_EQ(part_of_text(text, "initiators"), kInitiatorsText);
  EXPECT_EQ(part_of_text(text, "gpu_initiators"), kGpuInitiatorsText);
}

TEST(EarlierPart, GoesOnAsIfItHadNeverStopped) {
  const TemporaryFolder folder;
  Document first = document_of(every_way());
  first.set_client(client_of_documents());
  first.set_missing({"read_bw/HOST/a/64", "read_bw/HOST/a/128"});
  first.write(folder.path("part.json"));
  const EarlierPart part = read_earlier_part(folder.path("part.json"));
  EXPECT_EQ(part.argv, (std::vector<std::string>{"gdrperf", "sweep"}));
  EXPECT_EQ(part.version, "1.2 (abc)");
  EXPECT_EQ(part.started, "2025-01-31T12:00:00Z");
  EXPECT_EQ(part.missing, (std::set<std::string>{"read_bw/HOST/a/64", "read_bw/HOST/a/128"}));
  ASSERT_EQ(part.runs.size(), every_way().size());
  Document second(Tool{"1.2", "abc", {"gdrperf", "sweep"}}, "later");
  second.go_on_from(part);
  second.set_client(client_of_documents());
  second.set_missing({"read_bw/HOST/a/64", "read_bw/HOST/a/128"});
  EXPECT_EQ(second.to_json(), first.to_json());
}

TEST(EarlierPart, FiguresComeBackWithTheirIntervals) {
  const TemporaryFolder folder;
  RunRecord nothing = plain_rate(64, 1);
  nothing.measured.bandwidth.reset();
  RunRecord no_interval = plain_rate(128, 2);
  no_interval.measured.bandwidth->ci95_low_gbytes = std::numeric_limits<double>::quiet_NaN();
  no_interval.client = end_with("mlx5_0", "host");
  RunRecord no_rate = plain_rate(256, std::numeric_limits<double>::quiet_NaN());
  Document document = document_of({plain_rate(32, 12.5), nothing, no_interval, no_rate, plain_latency(32, 2000)});
  document.set_client(client_of_documents());
  document.set_missing({"a"});
  document.write(folder.path("part.json"));
  const std::vector<EarlierRun> runs = read_earlier_part(folder.path("part.json")).runs;
  ASSERT_EQ(runs.size(), 5u);
  EXPECT_EQ(runs[0].facts.spec.size_bytes, 32u);
  EXPECT_DOUBLE_EQ(runs[0].facts.measured.bandwidth.value().median_gbytes, 12.5);
  EXPECT_DOUBLE_EQ(runs[0].facts.measured.bandwidth->ci95_low_gbytes, 12.375);
  EXPECT_DOUBLE_EQ(runs[0].facts.measured.bandwidth->ci95_high_gbytes, 12.625);
  EXPECT_FALSE(runs[1].facts.measured.bandwidth || runs[1].facts.measured.latency);
  EXPECT_EQ(runs[2].facts.measured.bandwidth.value().ci95_low_gbytes, 0);
  EXPECT_FALSE(runs[2].facts.client.gpu || runs[2].facts.spec.consume) << "host memory";
  EXPECT_FALSE(runs[3].facts.measured.bandwidth);
  const Latency& latency = runs[4].facts.measured.latency.value();
  EXPECT_EQ(latency.p50_ns, 2000);
  EXPECT_EQ(latency.ci95_p50_low_ns, 1990);
  EXPECT_EQ(latency.ci95_p50_high_ns, 2020);
}

/// What is wrong with a file of that content.
std::string refused(const std::string& content) {
  const TemporaryFolder folder;
  std::ofstream(folder.path("a.json")) << content;
  try {
    read_earlier_part(folder.path("a.json"));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    const std::string text = error.what();
    EXPECT_EQ(text.find(folder.path("a.json") + ": "), 0u) << text;
    return text.substr(folder.path("a.json").size() + 2);
  }
  return "";
}

TEST(EarlierPart, WhatIsNoneIsRefusedWithAReason) {
  Document document = document_of({plain_rate(64, 1)});
  document.set_client(client_of_documents());
  EXPECT_THAT(refused(document.to_json()), HasSubstr("has all its runs"));
  document.set_missing({"a"});
  const std::string good = document.to_json();
  EXPECT_EQ(refused(good), "");
  const auto with = [&](const std::string& old, const std::string& text) {
    std::string changed = good;
    return changed.replace(changed.find(old), old.size(), text);
  };
  EXPECT_THAT(refused(good.substr(0, good.size() - 3)), HasSubstr("not JSON, or cut off"));
  EXPECT_THAT(refused("[]"), HasSubstr("no document of schema gdrperf-results/1"));
  EXPECT_THAT(refused("{}"), HasSubstr("no document of schema"));
  EXPECT_THAT(refused(with("gdrperf-results/1", "gdrperf-results/2")), HasSubstr("no document of schema"));
  EXPECT_THAT(refused(with("\"op\": \"write_bw\"", "\"op\": \"move_bw\"")), HasSubstr("there is no test 'move_bw'"));
  EXPECT_THAT(refused(with("\"size_bytes\": 64", "\"size_bytes\": \"64\"")), HasSubstr("type must be number"));
  document.add_imported({"b", "perftest", 1});
  EXPECT_THAT(refused(document.to_json()), HasSubstr("imported from another program"));
}

TEST(EarlierPart, ADocumentHas128MiBAtMost) {
  const TemporaryFolder folder;
  const std::string path = folder.path("large.json");
  std::ofstream(path).close();
  std::filesystem::resize_file(path, (std::uintmax_t{128} << 20) + 1);
  try {
    read_earlier_part(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("larger than 134217728 bytes"));
  }
}

}  // namespace
}  // namespace gdrperf::report
