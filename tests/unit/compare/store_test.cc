#include "gdrperf/compare/store.h"

#include <cmath>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../temporary_folder.h"
#include "samples.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"

namespace gdrperf::compare {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

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

}  // namespace
}  // namespace gdrperf::compare
