#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "gdrperf/topo/relation.h"

/// The words nvidia-smi topo prints.
namespace gdrperf::topo {

constexpr std::size_t kMaxLabel = 64;

inline bool is_numbered(std::string_view word, std::string_view stem) {
  if (!word.starts_with(stem) || word.size() == stem.size() || word.size() > kMaxLabel)
    return false;
  word.remove_prefix(stem.size());
  return std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

inline bool is_gpu(std::string_view word) { return is_numbered(word, "GPU"); }

/// "NV4": a bonded set of 4 NVLinks. NV0 would be none.
inline bool is_nvlink(std::string_view token) {
  return is_numbered(token, "NV") && token.size() <= 5 && token[2] != '0';
}

inline bool is_relation(std::string_view token) {
  return is_nvlink(token) || relation_from_token(token).has_value();
}

inline bool is_cell(std::string_view token) { return token == "X" || is_relation(token); }

/// Cells of `nvidia-smi topo -p2p`, which looks like a matrix and is none.
inline bool is_p2p(std::string_view token) {
  static constexpr std::array<std::string_view, 7> kTokens = {"OK",  "NS", "CNS", "GNS",
                                                              "TNS", "DR", "U"};
  return std::find(kTokens.begin(), kTokens.end(), token) != kTokens.end();
}

inline bool is_device_label(std::string_view word) {
  const auto fits = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           c == '-' || c == '.';
  };
  return word.size() <= kMaxLabel && std::all_of(word.begin(), word.end(), fits) && !is_cell(word);
}

}  // namespace gdrperf::topo
