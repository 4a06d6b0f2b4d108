#include "objects/attributes/buffers.h"

#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <cerrno>
#include <memory>

#include "memory/null_memory.h"
#include "objects/attributes/calls.h"
#include "objects/queues/failure.h"
#include "objects/queues/guarded.h"

namespace gdrperf::softnic {
namespace {

constexpr std::uint32_t kWithCpu = 1, kWithHint = 2, kWithMemoryType = 4;
/// Two bits of processing hints; volatile or persistent memory.
constexpr std::uint8_t kLastHint = 3, kLastMemoryType = 1;

constexpr std::uint64_t kWithIova = 1, kWithAddress = 2, kWithFd = 4, kWithFdOffset = 8, kWithDmaHandle = 16,
                        kWithBuffer = 32;

void require_alive(const ibv_context* context) {
  if (!Context::of(const_cast<ibv_context*>(context)).alive()) throw VerbsFailure{EINVAL};
}

/// The piece of a buffer that is asked for.
void check_buffer(const ibv_pd* pd, const MrRequest& request) {
  const auto begin = reinterpret_cast<std::uintptr_t>(request.addr);
  const auto base = reinterpret_cast<std::uintptr_t>(request.buf->address);
  const bool inside =
      begin >= base && begin - base <= request.buf->bytes && request.length <= request.buf->bytes - (begin - base);
  const bool by_fd = (request.comp_mask & (kWithFd | kWithFdOffset)) != 0;
  if (pd != request.buf->pd || (request.comp_mask & kWithAddress) == 0 || !inside || by_fd) throw VerbsFailure{EINVAL};
}

}  // namespace

void* make_buffer(ibv_pd* pd, std::size_t bytes, Buffer*& made) {
  return guarded([&]() -> void* {
    require_alive(pd->context);
    if (bytes == 0) throw VerbsFailure{EINVAL};
    auto buffer = std::make_unique<Buffer>(Buffer{nullptr, bytes, pd, -1});
    buffer->address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer->address == MAP_FAILED) throw VerbsFailure{ENOMEM};
    ++static_cast<Pd*>(pd)->users;
    made = buffer.release();
    return made->address;
  });
}

void free_buffer(Buffer* buffer) {
  --static_cast<Pd*>(buffer->pd)->users;
  ::munmap(buffer->address, buffer->bytes);
  delete buffer;
}

DmaHandle* make_dma_handle(ibv_context* context, const DmaHandleRequest& request) {
  return guarded([&]() -> DmaHandle* {
    require_alive(context);
    const auto given = [&](std::uint32_t what) { return (request.comp_mask & what) != 0; };
    if ((request.comp_mask & ~(kWithCpu | kWithHint | kWithMemoryType)) != 0) throw VerbsFailure{EOPNOTSUPP};
    if ((given(kWithCpu) && request.cpu_id >= static_cast<std::uint32_t>(::get_nprocs_conf())) ||
        (given(kWithHint) && request.ph > kLastHint) ||
        (given(kWithMemoryType) && request.tph_mem_type > kLastMemoryType)) {
      throw VerbsFailure{EINVAL};
    }
    return new DmaHandle{context};
  });
}

void free_dma_handle(DmaHandle* handle) { delete handle; }

ibv_mr* make_requested_mr(ibv_pd* pd, MrRequest request) {
  const auto given = [&](std::uint64_t what) { return (request.comp_mask & what) != 0; };
  return guarded([&]() -> ibv_mr* {
    require_alive(pd->context);
    constexpr std::uint64_t kAll = kWithIova | kWithAddress | kWithFd | kWithFdOffset | kWithDmaHandle | kWithBuffer;
    if ((request.comp_mask & ~kAll) != 0) throw VerbsFailure{EOPNOTSUPP};
    const auto access = static_cast<unsigned>(request.access);
    if (given(kWithBuffer)) check_buffer(pd, request);
    // As providers have it.
    if (given(kWithDmaHandle) && (request.dmah == nullptr || (access & IBV_ACCESS_ON_DEMAND) != 0))
      throw VerbsFailure{EINVAL};
    if (given(kWithFd)) {
      if (given(kWithAddress) || !given(kWithIova)) throw VerbsFailure{EINVAL};
      const std::uint64_t offset = given(kWithFdOffset) ? request.fd_offset : 0;
      return register_dmabuf(Pd::of(pd), offset, request.length, request.iova, request.fd, access);
    }
    if (!given(kWithAddress)) throw VerbsFailure{EINVAL};
    const std::uint64_t iova = given(kWithIova) ? request.iova : reinterpret_cast<std::uint64_t>(request.addr);
    return register_memory(Pd::of(pd), request.addr, request.length, iova, access);
  });
}

ibv_mr* make_null_mr(ibv_pd* pd) {
  return guarded([&]() -> ibv_mr* {
    require_alive(pd->context);
    if (!prepare_null_memory()) throw VerbsFailure{ENOMEM};
    return register_null(Pd::of(pd));
  });
}

}  // namespace gdrperf::softnic
