// Sessions gathered by cell, conditions that differ, and the documents that a path stands for.
#include "gdrperf/compare/side.h"

#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../temporary_folder.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"

namespace gdrperf::compare {
namespace {

using testing::ElementsAre;

Session session_with(std::uint64_t digest, const std::string& started, double value,
                     const std::string& kernel = "6.1") {
  Session session;
  session.path = fmt::format("{}.json", digest);
  session.digest = digest;
  session.started = started;
  session.cells = {{{"a", {{"host", "left"}, {"kernel", kernel}}, Better::kHigher}, value}};
  return session;
}

TEST(Side, ASeriesHasItsValuesInTheOrderAddedAndItsLatestStart) {
  Side side;
  side.add(session_with(1, "2025-02", 10));
  side.add(session_with(2, "2025-03", 30));
  side.add(session_with(3, "2025-01", 20));
  side.add(session_with(4, "2025-04", 40, "6.2"));
  const std::vector<Series>& all = side.cells().at("a");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_THAT(all[0].values, ElementsAre(10, 30, 20));
  EXPECT_THAT(all[0].starts, ElementsAre("2025-02", "2025-03", "2025-01"));
  EXPECT_EQ(all[0].last_started, "2025-03");
  EXPECT_THAT(all[1].values, ElementsAre(40));
  EXPECT_EQ(side.sessions(), 4u);
  EXPECT_TRUE(side.has(3));
  EXPECT_FALSE(side.has(5));
}

TEST(Side, WhatIsToldOfItsDocuments) {
  Side side;
  Session first = session_with(1, "2025-01", 10);
  first.tool = "0.1 (abc)";
  first.partial = true;
  first.unusable = {"cell\x1b"};
  first.cells[0].doubt = "unstable";
  side.add(first);
  side.add(session_with(2, "2025-02", 10));
  EXPECT_THAT(side.tools(), ElementsAre(Outside("0.1 (abc)")));
  EXPECT_THAT(side.partial(), ElementsAre(Outside("1.json")));
  EXPECT_THAT(side.unusable(), ElementsAre("1.json: cell\uFFFD"));
  EXPECT_THAT(side.cells().at("a")[0].doubts, ElementsAre("unstable"));
}

TEST(Side, AThousandDocumentsAreTheMost) {
  Side side;
  for (std::uint64_t i = 1; i <= 1000; ++i) EXPECT_TRUE(side.add(session_with(i, "", 1)));
  EXPECT_FALSE(side.add(session_with(1000, "", 1)));
  EXPECT_THROW(side.add(session_with(1001, "", 1)), Error);
}

/// "name: before -> now", of keys with these conditions.
std::vector<std::string> told(const std::vector<Condition>& before, const std::vector<Condition>& now,
                              const std::set<std::string>& across = {}) {
  std::vector<std::string> list;
  for (const Change& each : changes({"a", before, Better::kHigher}, {"a", now, Better::kHigher}, across)) {
    list.push_back(fmt::format("{}: {} -> {}", each.name, each.before.raw(), each.now.raw()));
  }
  return list;
}

TEST(Changes, EveryConditionThatDiffersUnlessItMay) {
  const std::vector<Condition> before = {{"host", "left"}, {"kernel", "6.1"}, {"firmware", "28.39"}};
  const std::vector<Condition> now = {{"host", "right"}, {"kernel", "6.1"}, {"firmware", "28.40"}};
  EXPECT_THAT(told(before, before), ElementsAre());
  EXPECT_THAT(told(before, now), ElementsAre("host: left -> right", "firmware: 28.39 -> 28.40"));
  EXPECT_THAT(told(before, now, {"host"}), ElementsAre("firmware: 28.39 -> 28.40"));
  EXPECT_THAT(told(before, now, {"firmware"}), ElementsAre("host: left -> right"));
}

TEST(Changes, OfListsInAnotherOrderOrOfAnotherLength) {
  const std::vector<Condition> now = {{"host", "left"}, {"kernel", "6.1"}, {"firmware", "28.39"}, {"driver", "-"}};
  EXPECT_THAT(told({{"firmware", "28.39"}, {"kernel", "6.0"}, {"host", "left"}, {"other", "x"}}, now),
              ElementsAre("kernel: 6.0 -> 6.1"));
  // A condition that the older lacks was not known.
  std::vector<Condition> shorter = now;
  shorter.resize(2);
  EXPECT_THAT(told(shorter, now), ElementsAre("firmware: - -> 28.39"));
  EXPECT_THAT(told(now, shorter), ElementsAre());
  CellKey before{"a", now, Better::kHigher};
  while (before.conditions.size() > 1) {
    before.conditions.pop_back();
    const std::size_t missing = before.conditions.size() == 3 ? 0 : 3 - before.conditions.size();
    EXPECT_EQ(changes(before, {"a", now, Better::kHigher}, {}).size(), missing);
  }
}

TEST(Documents, FilesFoldersAndTheirFolders) {
  const TemporaryFolder folder;
  for (const char* name : {"b.json", "a.json", "noise.json", "c.txt", "m/d.json", "m/noise.json", "m/deep/e.json"}) {
    std::filesystem::create_directories(std::filesystem::path(folder.path(name)).parent_path());
    write_file_atomic(folder.path(name), "{}");
  }
  std::filesystem::create_directories(folder.path("empty.json"));
  const auto found = [&](const std::vector<std::string>& paths) { return documents_at(paths); };
  EXPECT_THAT(found({folder.path()}),
              ElementsAre(folder.path("a.json"), folder.path("b.json"), folder.path("m/d.json")));
  EXPECT_THAT(found({folder.path("c.txt"), "-", folder.path("m")}),
              ElementsAre(folder.path("c.txt"), "-", folder.path("m/d.json"), folder.path("m/deep/e.json")));
  const auto refusal = [&](const std::vector<std::string>& paths) -> std::string {
    try {
      documents_at(paths);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({folder.path("b.json"), folder.path("absent")}),
            folder.path("absent") + ": no such file or folder");
  EXPECT_EQ(refusal({folder.path("b.json"), folder.path("empty.json")}),
            folder.path("empty.json") + ": no result documents in this folder");
}

}  // namespace
}  // namespace gdrperf::compare
