#include "gdrperf/mem/buffer.h"

#include "mem/cuda/memory.h"
#include "gdrperf/mem/kind.h"
#include "gdrperf/proto/settings.h"
#include "mem/accelerator/buffer.h"
#include "mem/file_buffer.h"
#include "mem/host_buffer.h"

namespace gdrperf::mem {

void check_kind(const std::string& text, const std::string& flag) {
  const Kind kind = parse_kind(text, flag);
  if (kind.place == Place::kFile) return check_file(kind, flag + " " + text);
  if (of_other_maker(kind)) return check_accelerator(kind, flag + " " + text);
  if (kind.place != Place::kHost && kind.place != Place::kHugepage) cuda::check(kind, text, flag.c_str());
}

std::vector<std::string> buffers_at_hand() {
  std::vector<std::string> kinds = {"host"};
  if (hugepages_at_hand()) kinds.push_back("hugepage");
  const int gpus = cuda::gpu_count();
  for (int i = 0; i < gpus; ++i) kinds.push_back("cuda:" + std::to_string(i));
  if (gpus > 0) kinds.insert(kinds.end(), {"cuda-vmm:0", "cuda-host", "staged:0"});
  return kinds;
}

std::vector<std::string> expand_kinds(const std::vector<std::string>& kinds, const char* flag) {
  std::vector<std::string> result;
  for (const std::string& kind : kinds) {
    if (kind == "all") {
      const std::vector<std::string> all = buffers_at_hand();
      result.insert(result.end(), all.begin(), all.end());
    } else if (kind.ends_with(":all")) {
      const std::string place = kind.substr(0, kind.size() - 4);
      check_kind(place, flag);
      const Kind parsed = parse_kind(place, flag);
      const int gpus = of_other_maker(parsed) ? accelerator_count(parsed) : cuda::gpu_count();
      for (int i = 0; i < gpus; ++i) result.push_back(place + ":" + std::to_string(i));
    } else {
      check_kind(kind, flag);
      result.push_back(kind);
    }
  }
  return result;
}

std::unique_ptr<Buffer> make_buffer(const std::string& text, std::size_t bytes, Registration registration) {
  const Kind kind = parse_kind(text, own_flag<&EndSpec::buffer>());
  switch (kind.place) {
    case Place::kHost: return make_host_buffer(bytes);
    case Place::kHugepage: return make_hugepage_buffer(bytes);
    case Place::kFile: return make_file_buffer(kind, bytes);
    case Place::kRocm:
    case Place::kZe: return make_accelerator_buffer(kind, bytes, registration);
    default: return cuda::make(kind, bytes, registration);
  }
}

std::unique_ptr<Buffer> make_bounce_buffer(const std::string& text, std::size_t bytes) {
  Kind kind = parse_kind(text, own_flag<&EndSpec::buffer>());
  if (!on_gpu(kind)) return make_host_buffer(bytes);
  kind.place = Place::kCudaHost;
  return cuda::make(kind, bytes, Registration::kAuto);
}

}  // namespace gdrperf::mem
