// Known messages as data: the format, its errors, and the program's own copy.

#include "gdrperf/doctor/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "doctor/words/words.h"
#include "gdrperf/base/error.h"
#include "machine.h"

namespace gdrperf::doctor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kClass = "class: ours\nsource: our logs\n\n";
constexpr const char* kRule =
    "check: ours\nverdict: FAIL\nline: OurFS\nline: lost connection|connection reset\nfound: the server closed\n"
    "  the connection\nwhy: it ends\nfix: look at the server\nexample: ourfs: lost connection to a\n";

std::string refusal(const std::string& text) {
  try {
    parse_words(text, "mine.words");
  } catch (const Error& error) {
    return std::string(error.what()) + " (" + error.hint() + ")";
  }
  return "accepted";
}

TEST(Words, ARuleIsRead) {
  const Words words = parse_words(std::string("# a comment\n") + kClass + kRule, "mine.words");
  ASSERT_EQ(words.rules.size(), 1u);
  EXPECT_EQ(words.rules[0].found, "the server closed the connection");
  EXPECT_THAT(words.rules[0].line,
              ElementsAre(ElementsAre("ourfs"), ElementsAre("lost connection", "connection reset")));
  EXPECT_EQ(words.rules[0].line_number, 5);
  EXPECT_EQ(words.classes.at(0).messages, 2);
  EXPECT_FALSE(words.rules[0].kernel_log);
}

TEST(Words, ErrorsNameFileAndLine) {
  EXPECT_THAT(refusal(kRule), HasSubstr("mine.words:1: a rule in front of the first class"));
  EXPECT_THAT(refusal("class: ours\n"), HasSubstr("mine.words:1: class 'ours' has no source"));
  EXPECT_THAT(refusal(std::string(kClass) + "check ours\n"),
              HasSubstr("mine.words:4: 'check ours' is no 'key: value'"));
  EXPECT_THAT(refusal(std::string(kClass) + "check: a\nverdict: BAD\n"),
              HasSubstr("mine.words:5: verdict 'BAD' is none (OK, WARN, FAIL or SKIP)"));
  EXPECT_THAT(refusal(std::string(kClass) + "check: a\nverdict: OK\nfound: b\n"),
              HasSubstr("mine.words:4: the rule has no 'line:'"));
  EXPECT_THAT(refusal(std::string(kClass) + "check: a\nverdict: WARN\nline: cc\nfound: b\n"),
              HasSubstr("the rule has no 'fix:'"));
  EXPECT_THAT(refusal(std::string(kClass) + "check: a\nverdict: OK\nline: cc\nfound: b\ncolour: red\n"),
              HasSubstr("mine.words:8: 'colour: red' is not known"));
  EXPECT_THAT(refusal(std::string(kClass) + "check: a\nverdict: OK\nline: c\nfound: b\n"),
              HasSubstr("less than 2 characters"));
  EXPECT_THAT(refusal(std::string(kClass) + "check: a\nverdict: OK\nline: cc\nfound: b\nexample: dd\n"),
              HasSubstr("does not match its example 'dd'"));
  EXPECT_THAT(refusal("  continued\n"), HasSubstr("mine.words:1: a continued line"));
  EXPECT_THAT(refusal("class: a\nsource:\n"), HasSubstr("mine.words:2: 'source:' has no value"));
}

TEST(Words, OfAFileComeFirst) {
  const auto path = std::filesystem::temp_directory_path() / "gdrperf-words-test.words";
  std::ofstream(path) << kClass << "check: ours\nverdict: OK\nline: failed status 12\nfound: fine here\n";
  const Words words = words_with(path);
  std::filesystem::remove(path);
  const auto findings = read_captures({{"a", "Failed status 12: wr_id 0\n"}}, words);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].found, "fine here");
  EXPECT_GT(words.rules.size(), known_words().rules.size());
}

TEST(Words, AConsequenceComesAfterItsCauseAndIsNoFailureBesideIt) {
  Findings findings;
  read_words(
      "socketProgress: Connection closed by remote peer b<1>\nNET/IB : mlx5_0:1 Got async event : port error\n",
      known_words(), WordScope::kAll, "line", findings);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].verdict, Verdict::kFail);
  EXPECT_EQ(findings[1].verdict, Verdict::kWarn);
  EXPECT_THAT(findings[1].evidence.at(0), HasSubstr("socketProgress"));
}

// What a rule knows must not be taken by another that knows less.
TEST(Words, EveryExampleIsItsOwnRules) {
  const Words& words = known_words();
  int examples = 0;
  for (const WordRule& rule : words.rules) {
    if (!rule.text.empty()) continue;
    for (const std::string& example : rule.examples) {
      ++examples;
      const auto first = std::find_if(words.rules.begin(), words.rules.end(),
                                      [&](const WordRule& each) { return matches_alone(each, example); });
      ASSERT_NE(first, words.rules.end()) << example;
      EXPECT_EQ(first->found, rule.found) << example;
    }
  }
  EXPECT_GE(examples, 130);
}

TEST(Words, EverySourceOfMessagesIsKnown) {
  for (const char* name : {"mlx5_core",
                           "mlx5_ib",
                           "bnxt_en, bnxt_re",
                           "irdma",
                           "efa",
                           "ionic",
                           "ib_core, ib_uverbs",
                           "nvidia",
                           "nvidia-peermem",
                           "nvidia-fabricmanager",
                           "amdgpu",
                           "PCI, AER, DPC",
                           "IOMMU",
                           "NCCL",
                           "RCCL",
                           "UCX",
                           "libfabric",
                           "NVSHMEM",
                           "perftest",
                           "rdma_cm",
                           "kubelet, device plugins",
                           "GPU and network operator"}) {
    const auto& classes = known_words().classes;
    const auto own =
        std::find_if(classes.begin(), classes.end(), [&](const WordClass& each) { return each.name == name; });
    ASSERT_NE(own, classes.end()) << name;
    EXPECT_GE(own->messages, 3) << name;
    EXPECT_FALSE(own->source.empty()) << name;
  }
}

}  // namespace
}  // namespace gdrperf::doctor
