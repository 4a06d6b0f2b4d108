#include "compare/document_scan.h"

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
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string text_of(const Scalar& value) {
  const char* kinds[] = {"null", "bool", "number", "string"};
  return fmt::format("{} {} '{}'", kinds[static_cast<int>(value.kind)], value.number, value.text);
}

std::string text_of(const Fields& fields) {
  std::string text;
  for (const auto& [name, value] : fields) text += fmt::format("{}={} ", name, value.text);
  return text;
}

/// What a scan gave to its handler, in order.
std::vector<std::string> scanned(const std::string& text) {
  std::vector<std::string> items;
  const ScanHandler handler{
      [&](const std::string& path, const Scalar& value) {
        items.push_back(fmt::format("{}: {}", path, text_of(value)));
      },
      [&](std::string_view list, const Fields& item) { items.push_back(fmt::format("{}: {}", list, text_of(item))); },
      [&](const std::string& relation, std::size_t index, const Fields& run) {
        items.push_back(fmt::format("{} {}: {}", relation, index, text_of(run)));
      }};
  scan_document(text, "x.json", handler);
  return items;
}

std::string refusal_of(const std::string& text) {
  try {
    scanned(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "";
}

/// A document with this run.
std::string with_run(const std::string& run) { return R"({"relations": {"PIX": {"write_bw": [)" + run + "]}}}"; }

TEST(Scan, ValuesOfEveryKind) {
  EXPECT_THAT(
      scanned(R"({"a": null, "b": true, "c": false, "d": -7, "e": 18446744073709551615, "f": 2.5, "g": "x"})"),
      ElementsAre("a: null 0 ''", "b: bool 1 'true'", "c: bool 0 'false'", "d: number -7 '-7'",
                  "e: number 1.8446744073709552e+19 '18446744073709551615'", "f: number 2.5 '2.5'", "g: string 0 'x'"));
}

TEST(Scan, ValuesThreeDeepButNoneOfListsOrBelow) {
  EXPECT_THAT(scanned(R"({"a": {"b": 1, "c": {"d": 2, "e": {"f": 3}}}, "g": [4, {"h": 5}], "i": 6})"),
              ElementsAre("a.b: number 1 '1'", "a.c.d: number 2 '2'", "i: number 6 '6'"));
}

TEST(Scan, LongTextsAndNamesAreCut) {
  const std::string longest(200, 'x');
  EXPECT_THAT(scanned(fmt::format(R"({{"{}": "{}"}})", longest, longest)),
              ElementsAre(longest + ": string 0 '" + longest + "'"));
  EXPECT_THAT(scanned(fmt::format(R"({{"{}y": "{}y"}})", longest, longest)),
              ElementsAre(longest + ": string 0 '" + longest + "'"));
}

TEST(Scan, OfRunsWhatNamesThemTheirConditionsAndTheirFigure) {
  EXPECT_THAT(
      scanned(
          with_run(R"({"op": "write_bw", "size_bytes": 64, "": 1, "started": "now", "iterations": 9, "unstable": true,
      "client": {"device": "mlx5_0", "kind": "hardware", "deeper": {"device": 1}}, "tx_depth": null,
      "bw": {"median_gbps": 98.5, "mean_gbps": 97, "max_gbps": 99}, "latency": {"p50_ns": 7, "p99_ns": 8}})")),
      ElementsAre("PIX 0: bw.max_gbps=99 bw.median_gbps=98.5 client.device=mlx5_0 iterations=9 latency.p50_ns=7 "
                  "op=write_bw size_bytes=64 tx_depth= unstable=true "));
}

TEST(Scan, OfListsInRunsTheEndsOfAnIntervalAlone) {
  EXPECT_THAT(scanned(with_run(
                  R"({"bw": {"ci95_gbps": [97, 99, 100], "batches_gbps": [1, 2]}, "latency": {"ci95_p50_ns": [5]}})")),
              ElementsAre("PIX 0: bw.ci95_gbps.0=97 bw.ci95_gbps.1=99 latency.ci95_p50_ns.0=5 "));
  // One list too deep, or not deep enough.
  EXPECT_THAT(scanned(with_run(R"({"bw": {"ci95_gbps": [[97, 99]]}, "bw.ci95_gbps": [1, 2]})")),
              ElementsAre("PIX 0: "));
  // A member of a member is no field, whatever it is called.
  EXPECT_THAT(scanned(with_run(R"({"size_bytes": {"a": {"b": 9}}, "op": {"c": 8}})")), ElementsAre("PIX 0: "));
}

TEST(Scan, RunsOfOneListAreNumberedAndKeepTheirFieldsApart) {
  EXPECT_THAT(
      scanned(
          R"({"relations": {"PIX": {"a": [{"op": "x", "tx_depth": 1}, {"op": "y"}], "b": [{}]},
              "HOST": {"a": [{"op": "z"}]}}})"),
      ElementsAre("PIX 0: op=x tx_depth=1 ", "PIX 1: op=y ", "PIX 0: ", "HOST 0: op=z "));
}

TEST(Scan, ItemsOfTheTopologysListsWithTheirOwnValues) {
  EXPECT_THAT(scanned(R"({"topology": {"source": "sysfs",
      "gpus": [{"name": "GPU0", "uuid": "u"}, {"model": "H"}],
      "nics": [{"name": "mlx5_0", "ports": {"1": "up"}, "x": {"bw": {"ci95_gbps": [1, 2]}}, "firmware": "28.39"}],
      "pairs": {"a": {"b": 1}}}, "other": {"gpus": [{"name": "no"}]}, "deep": {"a": {"b": {"c": 1}}}})"),
              ElementsAre("topology.source: string 0 'sysfs'", "gpus: name=GPU0 uuid=u ", "gpus: model=H ",
                          "nics: firmware=28.39 name=mlx5_0 "));
}

TEST(Scan, RelationsAreObjectsOfObjectsOfListsOfObjects) {
  const std::string suffix = " is not built as one";
  for (const auto& [relations, place] :
       {std::pair("7", "relations"), std::pair("[]", "relations"), std::pair("[[]]", "relations"),
        std::pair(R"({"PIX": []})", "relations.PIX"), std::pair(R"({"PIX": 1})", "relations.PIX"),
        std::pair(R"({"PIX": {"a": {}}})", "relations.PIX"), std::pair(R"({"PIX": {"a": 1}})", "relations.PIX"),
        std::pair(R"({"PIX": {"a": [1]}})", "relations.PIX"), std::pair(R"({"PIX": {"a": [[]]}})", "relations.PIX")}) {
    EXPECT_EQ(refusal_of(fmt::format(R"({{"relations": {}}})", relations)),
              fmt::format("x.json: no result document, {}{}", place, suffix));
  }
  EXPECT_EQ(refusal_of(with_run(R"({"a": [[{}]], "b": {}})")), "");
}

TEST(Scan, ADocumentIsOneObject) {
  EXPECT_EQ(refusal_of(""), "x.json: empty");
  EXPECT_EQ(refusal_of(" \t\r\n"), "x.json: empty");
  EXPECT_EQ(refusal_of("[]"), "x.json: no result document, it is a list");
  EXPECT_EQ(refusal_of("3"), "x.json: no result document, it is a single value");
}

TEST(Scan, NotJsonNamesTheByte) {
  EXPECT_EQ(refusal_of("{]"), "x.json: not JSON at byte 2");
  EXPECT_EQ(refusal_of(R"({"a": x})"), "x.json: not JSON at byte 7");
  EXPECT_EQ(refusal_of("{\"a\": 1"), "x.json: ends in the middle, after 7 bytes");
  EXPECT_EQ(refusal_of("{"), "x.json: ends in the middle, after 1 bytes");
  EXPECT_THAT(refusal_of(R"({"a": 1e999})"), HasSubstr("x.json: not JSON at byte"));
}

TEST(Scan, NaNIsNamedWhereItIsWhatIsWrong) {
  const std::string words = ": NaN is no JSON value, what is not known is null";
  for (const char* text : {"NaN", "nan", R"({"a": NaN})", R"({"a": nan})", R"({"a":-NaN})", R"({"a":NaN)"}) {
    EXPECT_THAT(refusal_of(text), HasSubstr(words)) << text;
  }
  for (const char* text : {R"({"a": xNaN})", R"({"a": xnan})", R"({"nan" 1})", R"({"a": nil})", "]"}) {
    EXPECT_THAT(refusal_of(text), Not(HasSubstr("NaN"))) << text;
  }
}

TEST(Scan, ThirtyTwoLevelsAreTheDeepest) {
  const auto nested = [](int levels) {
    std::string text;
    for (int i = 0; i < levels; ++i) text += "{\"a\":";
    return text + "1" + std::string(static_cast<std::size_t>(levels), '}');
  };
  EXPECT_EQ(refusal_of(nested(32)), "");
  EXPECT_EQ(refusal_of(nested(33)), "x.json: no result document, it is more than 32 levels deep");
}

TEST(Scan, FiftyThousandRunsAreTheMost) {
  std::size_t runs = 0;
  const ScanHandler handler{{}, {}, [&](const std::string&, std::size_t, const Fields&) { ++runs; }};
  std::string list;
  for (std::size_t i = 0; i < 49'999; ++i) list += "{},";
  scan_document(with_run(list + "{}"), "x.json", handler);
  EXPECT_EQ(runs, 50'000u);
  try {
    scan_document(with_run(list + "{},{}"), "x.json", handler);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "x.json: more than 50000 runs");
  }
}

TEST(Scan, DocumentsAreReadUpToTheirLargestSize) {
  const TemporaryFolder folder;
  const std::string path = folder.path("x.json");
  const auto refusal = [&](const std::string& file, std::size_t largest) -> std::string {
    try {
      read_document(file, largest);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  write_file_atomic(path, "{\"a\": 1}");
  EXPECT_EQ(read_document(path, 8), "{\"a\": 1}");
  EXPECT_EQ(refusal(path, 7), path + ": 0 MB; result documents above 0 MB are not read");
  std::filesystem::resize_file(path, 500'000'000);  // sparse
  EXPECT_EQ(refusal(path, 134'217'728), path + ": 500 MB; result documents above 134 MB are not read");
  EXPECT_EQ(refusal(folder.path(), 7), folder.path() + ": a folder, where a result document was expected");
  EXPECT_THAT(refusal(folder.path("absent"), 7), HasSubstr("No such file"));
}

}  // namespace
}  // namespace gdrperf::compare
