#include "mem/file_buffer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/unique_fd.h"
#include "gdrperf/base/units.h"
#include "mem/host_buffer.h"

namespace gdrperf::mem {
namespace {

UniqueFd opened(const Kind& kind, struct stat& about) {
  UniqueFd fd(::open(kind.file.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (!fd || ::fstat(fd.get(), &about) != 0) throw call_error(fmt::format("open({})", kind.file), errno, {});
  if (S_ISREG(about.st_mode) || S_ISCHR(about.st_mode)) return fd;
  throw usage_error(fmt::format("{}: is neither a file nor a device whose memory could be mapped", kind.file));
}

class FileBuffer final : public CpuBuffer {
 public:
  FileBuffer(const Kind& kind, std::size_t bytes) : CpuBuffer("file:" + kind.file, bytes) {
    struct stat about {};
    const UniqueFd fd = opened(kind, about);
    const bool fits = !S_ISREG(about.st_mode) || (static_cast<std::uint64_t>(about.st_size) >= kind.offset &&
                                                  static_cast<std::uint64_t>(about.st_size) - kind.offset >= bytes);
    if (!fits) {
      throw usage_error(
          fmt::format("{}: has {}, this run needs {} from byte {} on", kind.file,
                      about_size(static_cast<std::uint64_t>(about.st_size)), about_size(bytes), kind.offset),
          less_memory_hint());
    }
    void* const at =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), static_cast<off_t>(kind.offset));
    if (at == MAP_FAILED)
      throw call_error(fmt::format("mmap({} of {})", format_size(bytes), kind.file), errno, {},
                       "an offset is a multiple of the page size");
    data_ = static_cast<std::byte*>(at);
    std::memset(data_, 0, bytes);
  }
  ~FileBuffer() override { unmap(); }
  void let_go() noexcept override { unmap(); }
  FileBuffer(const FileBuffer&) = delete;
  FileBuffer& operator=(const FileBuffer&) = delete;

 private:
  void unmap() noexcept {
    if (data_ != nullptr) ::munmap(data_, size());
    data_ = nullptr;
  }
};

}  // namespace

void check_file(const Kind& kind, const std::string& asked) {
  struct stat about {};
  try {
    opened(kind, about);
  } catch (const Error& error) {
    throw error.in(asked);
  }
}

std::unique_ptr<Buffer> make_file_buffer(const Kind& kind, std::size_t bytes) {
  return std::make_unique<FileBuffer>(kind, bytes);
}

}  // namespace gdrperf::mem
