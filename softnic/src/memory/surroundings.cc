#include "memory/surroundings.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace gdrperf::softnic {

bool alone() {
  const auto file = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, "/proc/self/stat", O_RDONLY | O_CLOEXEC));
  if (file < 0) return false;
  char text[1024] = {};
  const ssize_t length = ::read(file, text, sizeof text - 1);
  ::close(file);
  const char* at = length > 0 ? std::strrchr(text, ')') : nullptr;
  // Field 20 of proc(5); the name is the second.
  for (int field = 2; at != nullptr && field < 20; ++field) at = std::strchr(at + 1, ' ');
  return at != nullptr && std::atoi(at) <= 2;
}

namespace {

bool has_go_note(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const auto& part = object.dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    std::uint64_t at = object.dlpi_addr + part.p_vaddr;
    const std::uint64_t end = at + part.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
      if (note->n_namesz == 4 && std::memcmp(note + 1, "Go\0", 4) == 0) return true;
      const auto padded = [](std::uint64_t bytes) { return (bytes + 3) & ~std::uint64_t{3}; };
      at += sizeof *note + padded(note->n_namesz) + padded(note->n_descsz);
    }
  }
  return false;
}

}  // namespace

bool go_loaded() {
  const auto visit = [](dl_phdr_info* object, std::size_t, void*) { return has_go_note(*object) ? 1 : 0; };
  return ::dl_iterate_phdr(visit, nullptr) != 0;
}

namespace {

constexpr std::uint64_t kControlBlockBytes = 4096;
constexpr std::uint64_t kRseqBytes = 64;
// TLS that lies farther away was allocated when it was first used, as other memory is.
constexpr std::uint64_t kMostStaticTls = 64u << 10;

void include(PageRange& kept, std::uint64_t thread, std::uint64_t begin, std::uint64_t bytes) {
  if (begin + kMostStaticTls < thread || begin > thread + kMostStaticTls) return;
  kept.begin = std::min(kept.begin, begin);
  kept.end = std::max(kept.end, begin + bytes);
}

int include_tls(dl_phdr_info* object, std::size_t, void* argument) {
  if (object->dlpi_tls_data == nullptr) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    if (object->dlpi_phdr[i].p_type != PT_TLS) continue;
    include(*static_cast<PageRange*>(argument), reinterpret_cast<std::uint64_t>(::pthread_self()),
            reinterpret_cast<std::uint64_t>(object->dlpi_tls_data), object->dlpi_phdr[i].p_memsz);
  }
  return 0;
}

}  // namespace

PageRange kept_of_thread() {
  const auto thread = reinterpret_cast<std::uint64_t>(::pthread_self());
  PageRange kept{thread, thread + kControlBlockBytes};
  ::dl_iterate_phdr(&include_tls, &kept);
  // Of glibc 2.35 and newer.
  static const auto* const rseq_offset = static_cast<const std::ptrdiff_t*>(::dlsym(RTLD_DEFAULT, "__rseq_offset"));
  if (rseq_offset != nullptr) {
    const auto pointer = reinterpret_cast<std::uint64_t>(__builtin_thread_pointer());
    include(kept, thread, pointer + static_cast<std::uint64_t>(*rseq_offset), kRseqBytes);
  }
  return kept;
}

bool cuda_loaded() {
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library != nullptr) ::dlclose(library);
  return library != nullptr;
}

}  // namespace gdrperf::softnic
