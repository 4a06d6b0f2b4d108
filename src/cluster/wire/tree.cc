#include "cluster/wire/tree.h"

#include <charconv>
#include <iterator>

#include <fmt/format.h>

#include "gdrperf/base/error.h"

namespace gdrperf::app {
namespace {

constexpr std::string_view kBundleHead = "many ";

// A number and the blank behind it.
std::size_t take_number(std::string_view& text) {
  std::size_t value = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto length = static_cast<std::size_t>(at - text.data());
  if (error != std::errc() || length >= text.size() || *at != ' ') throw peer_error("a bundle of messages is garbled");
  text.remove_prefix(length + 1);
  return value;
}

}  // namespace

std::vector<int> tree_parents(std::size_t count, int fanout) {
  std::vector<int> parents(count, -1);
  for (std::size_t i = 1; i < count; ++i) parents[i] = (static_cast<int>(i) - 1) / fanout;
  return parents;
}

std::string begin_bundle(std::chrono::milliseconds patience) {
  return fmt::format("{}{} ", kBundleHead, patience.count());
}

void add_to_bundle(int rank, std::string_view text, std::string& bundle) {
  fmt::format_to(std::back_inserter(bundle), "{} {} ", rank, text.size());
  bundle += text;
}

bool is_bundle(std::string_view text) { return text.starts_with(kBundleHead); }

Bundle read_bundle(std::string_view text) {
  if (!is_bundle(text)) throw peer_error("a bundle of messages was due");
  text.remove_prefix(kBundleHead.size());
  Bundle bundle;
  bundle.patience = std::chrono::milliseconds(take_number(text));
  while (!text.empty()) {
    const std::size_t rank = take_number(text);
    const std::size_t length = take_number(text);
    if (length > text.size() || rank > 1u << 20) throw peer_error("a bundle of messages is garbled");
    bundle.texts.emplace_back(static_cast<int>(rank), text.substr(0, length));
    text.remove_prefix(length);
  }
  return bundle;
}

}  // namespace gdrperf::app
