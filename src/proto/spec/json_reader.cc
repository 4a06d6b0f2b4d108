#include "proto/spec/json_reader.h"

#include <cmath>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/printable.h"

namespace gdrperf::proto {

using nlohmann::json;

JsonReader::JsonReader(const json& value, std::string path)
    : object_(&value), path_(std::move(path)) {
  if (!value.is_object()) refuse(path_, "is no object");
}

void JsonReader::refuse(const std::string& path, const std::string& what) {
  throw peer_error(fmt::format("message not understood: {} {}", path, what));
}

const json& JsonReader::at(const char* member) const {
  const auto found = object_->find(member);
  if (found == object_->end()) refuse(path_of(member), "is missing");
  return *found;
}

std::int64_t JsonReader::to_signed(const json& value, const std::string& path, std::int64_t low,
                                   std::int64_t high) {
  if (!value.is_number_integer()) refuse(path, "is no integer");
  // An unsigned value above the signed range wraps in get<>.
  const bool wraps = value.is_number_unsigned() &&
                     value.get<std::uint64_t>() >
                         static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const auto number = value.get<std::int64_t>();
  if (wraps || number < low || number > high)
    refuse(path, fmt::format("is not within {} and {}", low, high));
  return number;
}

std::uint64_t JsonReader::to_unsigned(const json& value, const std::string& path, std::uint64_t low,
                                      std::uint64_t high) {
  if (!value.is_number_integer()) refuse(path, "is no integer");
  const bool negative = !value.is_number_unsigned() && value.get<std::int64_t>() < 0;
  const auto number = value.get<std::uint64_t>();
  if (negative || number < low || number > high)
    refuse(path, fmt::format("is not within {} and {}", low, high));
  return number;
}

double JsonReader::to_number(const json& value, const std::string& path) {
  if (!value.is_number()) refuse(path, "is no number");
  // Thirty years in ns, and above any rate: sums of such numbers stay finite.
  constexpr double kMost = 1e18;
  const double number = value.get<double>();
  if (!(std::abs(number) <= kMost)) refuse(path, fmt::format("is not within {} and {}", -kMost, kMost));
  return number;
}

std::string JsonReader::to_text(const json& value, const std::string& path, std::size_t most_bytes) {
  if (!value.is_string()) refuse(path, "is no text");
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() > most_bytes)
    refuse(path, fmt::format("is longer than {} bytes", most_bytes));
  return printable(text);
}

double JsonReader::number(const char* member) const {
  return to_number(at(member), path_of(member));
}

std::string JsonReader::text(const char* member) const {
  return to_text(at(member), path_of(member));
}

std::string JsonReader::text_or_empty(const char* member) const {
  return has(member) ? text(member) : std::string();
}

JsonReader JsonReader::object(const char* member) const { return {at(member), path_of(member)}; }

const json& JsonReader::array(const char* member, std::size_t max_items) const {
  const json& value = at(member);
  if (!value.is_array()) refuse(path_of(member), "is no list");
  if (value.size() > max_items)
    refuse(path_of(member), fmt::format("has more than {} items", max_items));
  return value;
}

}  // namespace gdrperf::proto
