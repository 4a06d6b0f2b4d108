#include "gdrperf/mem/kind.h"

#include <array>
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
    Name{"rocm", Place::kRocm, true},
};

}  // namespace

Kind parse_kind(std::string_view text, const std::string& flag) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  for (const Name& known : kNames) {
    if (name != known.text) continue;
    const bool numbered = colon != std::string_view::npos;
    if (numbered && (!known.names_gpu || colon + 1 == text.size())) break;
    // "cuda" alone is the first one.
    return {known.place, known.names_gpu ? std::string(numbered ? text.substr(colon + 1) : "0") : std::string()};
  }
  throw usage_error(fmt::format("{} '{}': no such kind of memory", flag, text),
                    "choose host, hugepage, cuda:N, cuda-vmm:N, cuda-host, staged:N or rocm:N; N is a GPU's index, for "
                    "NVIDIA also its PCI address or UUID");
}

bool on_gpu(const Kind& kind) {
  return kind.place == Place::kCuda || kind.place == Place::kCudaVmm || kind.place == Place::kRocm ||
         kind.place == Place::kStaged;
}

}  // namespace gdrperf::mem
