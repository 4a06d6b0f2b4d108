#include "gpu/dmabufs.h"

#include <sys/stat.h>

#include <algorithm>
#include <deque>

#include "gdrperf/base/mutex.h"

namespace gdrperf::softnic {
namespace {

struct Export {
  dev_t device;
  ino_t inode;
  std::uint8_t* address;
  std::size_t bytes;
};
/// Programs register a dma-buf soon after they have it.
constexpr std::size_t kRemembered = 1024;

struct Exports {
  Mutex mutex;
  std::deque<Export> latest GUARDED_BY(mutex);
};
Exports& exports() {
  static Exports& all = *new Exports();
  return all;
}

}  // namespace

void remember_dmabuf(int dmabuf, void* address, std::size_t bytes) {
  struct stat file {};
  if (::fstat(dmabuf, &file) != 0) return;
  const MutexLock guard(exports().mutex);
  exports().latest.push_front({file.st_dev, file.st_ino, static_cast<std::uint8_t*>(address), bytes});
  if (exports().latest.size() > kRemembered) exports().latest.pop_back();
}

void* find_dmabuf(int dmabuf, std::uint64_t offset, std::uint64_t bytes) {
  struct stat file {};
  if (::fstat(dmabuf, &file) != 0) return nullptr;
  const MutexLock guard(exports().mutex);
  const auto found = std::find_if(exports().latest.begin(), exports().latest.end(), [&](const Export& it) {
    return it.device == file.st_dev && it.inode == file.st_ino;
  });
  if (found == exports().latest.end() || offset > found->bytes || bytes > found->bytes - offset) return nullptr;
  return found->address + offset;
}

}  // namespace gdrperf::softnic
