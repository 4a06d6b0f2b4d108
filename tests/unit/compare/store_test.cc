#include "gdrperf/compare/store.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../temporary_folder.h"
#include "samples.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/text.h"

namespace gdrperf::compare {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Store : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    write_file_atomic(root_ + "/" + name, text);
    return root_ + "/" + name;
  }
  std::string session(int number, double figure, const std::string& firmware = "28.39") const {
    MadeDocument document;
    document.started = fmt::format("2025-01-31T12:{:02}:00Z", number);
    document.firmware = firmware;
    document.runs[0].figure = fmt::format("{}", figure);
    return write(fmt::format("{}-{}.json", firmware, number), text_of(document));
  }
  std::string store() const { return root_ + "/baselines"; }

  TemporaryFolder folder_;
  const std::string& root_ = folder_.path();
};

TEST_F(Store, DocumentsByMachineEachOnce) {
  const std::vector<std::string> files{session(1, 100), session(2, 101), session(3, 99, "28.40")};
  const auto stored = store_documents(files, store());
  ASSERT_EQ(stored.size(), 2u);
  EXPECT_EQ(stored[0].added + stored[1].added, 3u);
  const auto again = store_documents({files[0]}, store());
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].added, 0u);
  EXPECT_EQ(again[0].already_there, 1u);
  EXPECT_EQ(again[0].sessions, 2u);
  EXPECT_EQ(documents_at({store()}).size(), 3u);
  EXPECT_EQ(documents_at({again[0].folder}).size(), 2u);
}

TEST_F(Store, ABadDocumentStoresNothing) {
  EXPECT_THROW(store_documents({session(1, 100), write("cut.json", "{\"schema\"")}, store()), Error);
  EXPECT_FALSE(fs::exists(store()));
  MadeDocument nothing;
  nothing.runs[0].figure = "null";
  EXPECT_THROW(store_documents({write("null.json", text_of(nothing))}, store()), Error);
  EXPECT_THROW(store_documents({root_ + "/absent.json"}, store()), Error);
}

TEST_F(Store, NoiseIsRecordedAndReadBack) {
  std::vector<std::string> files;
  for (int i = 0; i < 9; ++i) files.push_back(session(i, 100 + i % 3));
  store_documents(files, store());
  const RecordedNoise recorded = record_noise({store()}, store());
  ASSERT_EQ(recorded.files.size(), 1u);
  EXPECT_EQ(recorded.table.size(), 1u);
  EXPECT_EQ(documents_at({store()}).size(), 9u);  // noise.json is no document
  const NoiseTable read = read_noise_at(store());
  const CellKey key = parse_session(read_file(files[0], 1 << 20), "x").cells[0].key;
  const CellNoise* noise = read.find(key, {});
  ASSERT_NE(noise, nullptr);
  EXPECT_EQ(noise->sessions, 9u);
  // ln 1, ln 1.01, ln 1.02, three times each.
  EXPECT_NEAR(noise->spread, 0.00857, 1e-4);
  // t(0.9995, 8) = 5.0413.
  EXPECT_NEAR(noise_shift(*noise, 9, 3), 5.0413 * noise->spread * std::sqrt(1.0 / 9 + 1.0 / 3), 1e-6);
  EXPECT_EQ(noise_shift(*noise, 9, 9), noise_shift(*noise, 9, 3));
  EXPECT_GT(noise_shift(*noise, 9, 1), noise_shift(*noise, 9, 2));
  CellKey other = key;
  for (Condition& each : other.conditions) {
    if (each.name == "kernel") each.value = "another kernel";
  }
  EXPECT_EQ(read.find(other, {}), nullptr);
  EXPECT_NE(read.find(other, {"kernel"}), nullptr);
}

TEST_F(Store, TooFewSessionsForNoise) {
  try {
    record_noise({session(1, 100), session(2, 101)}, store());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kInconclusive);
  }
}

TEST_F(Store, SpoiledNoiseIsRefused) {
  NoiseTable table;
  for (const char* text : {"", "[]", "{}", "{\"schema\": \"gdrperf-noise/1\"}", "{\"schema\": 4}",
                           "{\"schema\": \"gdrperf-noise/1\", \"cells\": [{\"cell\": \"a\", \"conditions\": {}, "
                           "\"sessions\": 3, \"spread_percent\": 1}]}",
                           "{\"schema\": \"gdrperf-noise/1\", \"cells\": [{\"cell\": \"a\", \"conditions\": {}, "
                           "\"sessions\": 20, \"spread_percent\": null}]}"}) {
    EXPECT_THROW(table.read(text, "noise.json"), Error) << text;
  }
}

TEST_F(Store, FoldersWithoutDocuments) {
  try {
    documents_at({root_});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no result documents"));
  }
}

/// What is refused, with its hint behind " | ".
template <typename Call>
std::string refusal_by(Call call, ExitCode code = ExitCode::kUsage) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return std::string(error.what()) + (error.hint().empty() ? "" : " | ") + error.hint();
  }
  return "";
}

class StoreFolders : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return root_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(at(name)).parent_path());
    write_file_atomic(at(name), text);
    return at(name);
  }
  std::string document(const std::string& started, const std::string& host = "left",
                       const std::string& figure = "100") const {
    MadeDocument made;
    made.started = started;
    made.host = host;
    made.runs[0].figure = figure;
    return write(host + figure + started.substr(0, 20) + ".json", text_of(made));
  }
  std::string store() const { return at("store"); }
  /// What is in the store, relative to it, sorted.
  std::vector<std::string> all() const {
    std::vector<std::string> names;
    for (const auto& each : fs::recursive_directory_iterator(store()))
      names.push_back(each.path().lexically_relative(store()).string());
    std::sort(names.begin(), names.end());
    return names;
  }

  TemporaryFolder folder_;
  const std::string& root_ = folder_.path();
};

TEST_F(StoreFolders, DocumentsAreCalledByTheirStartAndDigest) {
  const std::pair<std::string, std::string> kStarts[] = {
      {"2025-01-31T12:00:00Z", "20250131T120000Z"},
      {"", "undated"},
      {"::", "undated"},
      {std::string(41, '7'), std::string(40, '7')},
      {"-" + std::string(40, '8'), std::string(39, '8')},
  };
  for (const auto& [started, stamp] : kStarts) {
    const std::string file = document(started);
    const auto stored = store_documents({file}, store());
    ASSERT_EQ(stored.size(), 1u);
    const std::string text = read_file(file, 1 << 20);
    const std::string name = fmt::format("{}/{}-{:016x}.json", stored[0].folder, stamp, digest(text));
    ASSERT_TRUE(fs::exists(name)) << name;
    EXPECT_EQ(read_file(name, 1 << 20), text);
  }
}

TEST_F(StoreFolders, EachFolderWithWhatWasAddedAndWhatIsInIt) {
  const std::string a = document("1", "a"), b = document("2", "a"), c = document("3", "b");
  const auto first = store_documents({a, c}, store());
  ASSERT_EQ(first.size(), 2u);
  const auto second = store_documents({a, b, c, c}, store());
  ASSERT_EQ(second.size(), 2u);
  EXPECT_THAT(second[0].folder, testing::StartsWith(store() + "/a_mlx5_0_hardware_28.39-"));
  EXPECT_EQ(second[0].added, 1u);
  EXPECT_EQ(second[0].already_there, 1u);
  EXPECT_EQ(second[0].sessions, 2u);
  EXPECT_EQ(second[1].added, 0u);
  EXPECT_EQ(second[1].already_there, 2u);
  EXPECT_EQ(second[1].sessions, 1u);
}

TEST_F(StoreFolders, WhatIsNotStored) {
  const std::string empty = document("1", "a", "null");
  EXPECT_EQ(refusal_by([&] { store_documents({empty}, store()); }),
            empty + ": has no result that could be a baseline | nothing was stored");
  EXPECT_EQ(refusal_by([&] { store_documents({"-"}, store()); }), "baseline add reads files, not standard input");
  const std::string file = document("1");
  EXPECT_EQ(refusal_by([&] { store_documents({file}, file); }, ExitCode::kEnvironment).substr(0, 12), "cannot make ");
}

TEST_F(StoreFolders, NoiseIsRecordedByMachine) {
  std::vector<std::string> files;
  for (int i = 0; i < 5; ++i) files.push_back(document(fmt::format("{}", i), "a", fmt::format("{}", 100 + i)));
  for (int i = 0; i < 4; ++i) files.push_back(document(fmt::format("{}", i), "b", fmt::format("{}", 100 + i)));
  files.push_back(document("9", "c", "null"));
  files.push_back(files[0]);
  const RecordedNoise noise = record_noise(files, store());
  ASSERT_EQ(noise.files.size(), 1u);
  EXPECT_THAT(noise.files[0], testing::MatchesRegex(".*/store/a_.*/noise\\.json"));
  EXPECT_EQ(noise.table.size(), 1u);
  EXPECT_EQ(noise.too_few, 1u);
  EXPECT_THAT(noise.warnings, ElementsAre(files[9] + ": write_bw/HOST/host:mlx5_0/65536 has no result"));
  EXPECT_EQ(read_file(noise.files[0], 1 << 20), noise.table.to_json());
  EXPECT_EQ(refusal_by([&] { record_noise({files[5]}, store()); }, ExitCode::kInconclusive),
            "no cell has the 5 sessions that its noise takes | measure the same thing in more invocations, with "
            "nothing changed "
            "between them");
}

TEST_F(StoreFolders, MachinesWithTheirFirstAndLastSession) {
  for (const char* started : {"2025-02", "2025-01", "2025-03"}) store_documents({document(started, "a")}, store());
  store_documents({document("2025-04", "b")}, store());
  const std::vector<std::string> folders = {all()[0], all()[4]};
  write("store/" + folders[1] + "/noise.json", "{}");
  write("store/stray.json", "{}");
  write("store/clusters/x/y.json", "{}");
  const std::vector<StoredMachine> machines = machines_of(store());
  ASSERT_EQ(machines.size(), 2u);
  EXPECT_EQ(machines[0].machine, folders[0]);
  EXPECT_EQ(machines[0].sessions, 3u);
  EXPECT_EQ(machines[0].first, "2025-01");
  EXPECT_EQ(machines[0].last, "2025-03");
  EXPECT_FALSE(machines[0].noise);
  EXPECT_EQ(machines[1].machine, folders[1]);
  EXPECT_EQ(machines[1].sessions, 1u);
  EXPECT_EQ(machines[1].first, "2025-04");
  EXPECT_EQ(machines[1].last, "2025-04");
  EXPECT_TRUE(machines[1].noise);
}

TEST_F(StoreFolders, AStoreWithoutAMachine) {
  const std::string none = fmt::format("no baseline in '{}' | --dir names the store", store());
  EXPECT_EQ(refusal_by([&] { machines_of(store()); }), none);
  write("store/stray.json", "{}");
  EXPECT_EQ(refusal_by([&] { machines_of(store()); }), none);
  write("store/clusters/x/y.json", "{}");
  EXPECT_EQ(refusal_by([&] { machines_of(store()); }), "");
  EXPECT_THAT(machines_of(store()), IsEmpty());
}

TEST_F(StoreFolders, DocumentsOfAMachineOrOfTheOnlyOne) {
  store_documents({document("1", "a")}, store());
  const std::vector<std::string> first = all();  // its folder and its document
  EXPECT_THAT(documents_of("", store()), ElementsAre(store() + "/" + first[1]));
  store_documents({document("2", "b")}, store());
  EXPECT_THAT(documents_of(first[0], store()), ElementsAre(store() + "/" + first[1]));
  const std::string names = fmt::format(" | there are {}, {}", first[0], all()[2]);
  EXPECT_EQ(refusal_by([&] { documents_of("", store()); }),
            fmt::format("'{}' has 2 machines: name one", store()) + names);
  EXPECT_EQ(refusal_by([&] { documents_of("c", store()); }), fmt::format("no machine 'c' in '{}'", store()) + names);
}

class StoreRemoval : public StoreFolders {
 protected:
  /// Two machines: "m" with two documents and noise, "n" with one; a cluster's folder.
  void SetUp() override {
    for (const char* name : {"m/1.json", "m/2.json", "m/noise.json", "n/3.json", "n/notes.txt", "clusters/c/4.json",
                             "clusters/c/5.json"}) {
      write(std::string("store/") + name, "{}");
    }
    write("outside.json", "{}");
  }
  /// Names relative to the store.
  std::vector<std::string> removed(const std::vector<std::string>& names) const {
    std::vector<std::string> list;
    for (const std::string& each : remove_from_store(names, store()))
      list.push_back(fs::path(each).lexically_relative(fs::canonical(store())).string());
    return list;
  }
};

TEST_F(StoreRemoval, AMachineGoesWithItsNoiseAndItsFolder) {
  EXPECT_THAT(removed({"m"}), ElementsAre("m/1.json", "m/2.json", "m/noise.json"));
  EXPECT_THAT(all(), ElementsAre("clusters", "clusters/c", "clusters/c/4.json", "clusters/c/5.json", "n", "n/3.json",
                                 "n/notes.txt"));
}

TEST_F(StoreRemoval, NoiseGoesWithTheLastDocumentNotBefore) {
  EXPECT_THAT(removed({"m/1.json"}), ElementsAre("m/1.json"));
  EXPECT_TRUE(fs::exists(store() + "/m/noise.json"));
  EXPECT_THAT(removed({"m/2.json", store() + "/m/2.json"}), ElementsAre("m/2.json", "m/noise.json"));
  EXPECT_FALSE(fs::exists(store() + "/m"));
  // What is no document stays, and its folder.
  EXPECT_THAT(removed({"n/3.json"}), ElementsAre("n/3.json"));
  EXPECT_TRUE(fs::exists(store() + "/n/notes.txt"));
}

TEST_F(StoreRemoval, SeveralAtATimeAlsoByPathsFromHere) {
  const std::string from_here = fs::relative(store() + "/m/2.json").string();
  EXPECT_THAT(removed({"m/1.json", from_here, "n/3.json"}),
              ElementsAre("m/1.json", "m/2.json", "n/3.json", "m/noise.json"));
}

TEST_F(StoreRemoval, ClustersByTheirFolderOrDocument) {
  EXPECT_THAT(removed({"clusters/c/4.json"}), ElementsAre("clusters/c/4.json"));
  EXPECT_THAT(removed({store() + "/clusters/c"}), ElementsAre("clusters/c/5.json"));
  EXPECT_FALSE(fs::exists(store() + "/clusters/c"));
}

TEST_F(StoreRemoval, WhatIsNotOfTheStoreStopsAll) {
  const std::vector<std::string> before = all();
  for (const std::string& name :
       {std::string("absent"), std::string("."), std::string(".."), std::string("clusters"), std::string("n/notes.txt"),
        std::string("../outside.json"), at("outside.json"), root_, std::string("m/.."), store()}) {
    EXPECT_EQ(refusal_by([&] {
                remove_from_store({"m", name}, store());
              }),
              fmt::format("'{0}' is no machine and no document of '{1}'; nothing was removed | 'gdrperf baseline list "
                          "--dir {1}' lists them",
                          name, store()));
  }
  EXPECT_EQ(all(), before);
  EXPECT_TRUE(fs::exists(at("outside.json")));
}

}  // namespace
}  // namespace gdrperf::compare
