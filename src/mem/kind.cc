#include "gdrperf/mem/kind.h"

#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "gdrperf/base/error.h"

namespace gdrperf::mem {
namespace {

struct Name {
  const char* text;
  Place place;
  bool names_gpu;
};

constexpr std::array kNames = {
    Name{"host", Place::kHost, false},        Name{"hugepage", Place::kHugepage, false},
    Name{"cuda", Place::kCuda, true},         Name{"cuda-vmm", Place::kCudaVmm, true},
    Name{"cuda-host", Place::kCudaHost, false}, Name{"staged", Place::kStaged, true},
    Name{"rocm", Place::kRocm, true},         Name{"ze", Place::kZe, true},
};

/// "/dev/x", "/tmp/x@4096".
Kind file_kind(std::string_view text, const std::string& flag) {
  Kind kind{Place::kFile, {}, std::string(text), 0};
  const std::size_t at = text.rfind('@');
  if (at != std::string_view::npos) {
    const std::string_view digits = text.substr(at + 1);
    const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), kind.offset);
    if (error == std::errc() && rest == digits.data() + digits.size()) {
      kind.file.resize(at);
    } else if (error == std::errc::result_out_of_range) {
      throw usage_error(fmt::format("{} file:{}: there is no such offset", flag, text));
    } else {
      kind.offset = 0;
    }
  }
  if (kind.file.empty()) {
    throw usage_error(fmt::format("{} 'file:{}': names no file", flag, text), "give file:PATH or file:PATH@OFFSET");
  }
  return kind;
}

}  // namespace

Kind parse_kind(std::string_view text, const std::string& flag) {
  const std::size_t colon = text.find(':');
  if (text.starts_with("file:")) return file_kind(text.substr(colon + 1), flag);
  const std::string_view name = text.substr(0, colon);
  for (const Name& known : kNames) {
    if (name != known.text) continue;
    const bool numbered = colon != std::string_view::npos;
    if (numbered && (!known.names_gpu || colon + 1 == text.size())) break;
    // "cuda" alone is the first one.
    return {known.place, known.names_gpu ? std::string(numbered ? text.substr(colon + 1) : "0") : std::string(), {}, 0};
  }
  throw usage_error(
      fmt::format("{} '{}': no such kind of memory", flag, text),
      "choose host, hugepage, file:PATH, cuda:N, cuda-vmm:N, cuda-host, staged:N, rocm:N or ze:N; N is a GPU's index, "
      "for NVIDIA also its PCI address or UUID");
}

bool on_gpu(const Kind& kind) {
  return kind.place == Place::kCuda || kind.place == Place::kCudaVmm || kind.place == Place::kStaged ||
         of_other_maker(kind);
}

bool of_other_maker(const Kind& kind) { return kind.place == Place::kRocm || kind.place == Place::kZe; }

}  // namespace gdrperf::mem
