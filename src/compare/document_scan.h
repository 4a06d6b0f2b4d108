#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace gdrperf::compare {

/// Runs in one document: far above any sweep, what a hostile one can make us keep.
inline constexpr std::size_t kMostRuns = 50'000;

/// The whole text of a result document ("-": standard input). Throws usage_error
/// naming `path` when it is a folder, cannot be read or has more than `largest` bytes.
std::string read_document(const std::string& path, std::size_t largest);

/// A JSON value that is no object and no array.
struct Scalar {
  enum class Kind { kNull, kBool, kNumber, kString };
  Kind kind = Kind::kNull;
  double number = 0;
  std::string text;  ///< as it is shown: of a number its digits
};

/// By path below an object, such as "client.device".
using Fields = std::map<std::string, Scalar, std::less<>>;

/// Receives a scan's items, in the document's order.
struct ScanHandler {
  /// A value outside of lists and runs: "schema", "hosts.client.kernel".
  std::function<void(const std::string& path, const Scalar& value)> value;
  /// An item of topology.gpus, topology.nics: its kind and its fields.
  std::function<void(std::string_view list, const Fields& item)> inventory;
  /// A run with the fields a comparison needs.
  std::function<void(const std::string& relation, std::size_t index, const Fields& run)> run;
};

/// Reads a result document without building it: a series of batches costs its
/// reading, not memory. Throws usage_error naming `path` and the byte, or saying
/// that there are more runs than kMostRuns.
void scan_document(std::string_view text, const std::string& path, const ScanHandler& handler);

}  // namespace gdrperf::compare
