#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "objects/memory/mr.h"

/// Objects of later versions of verbs.h than the one that this builds with, laid
/// out as there: buffers, DMA handles, and what ibv_reg_mr_ex() is asked for.
namespace gdrperf::softnic {

/// struct ibv_buf of rdma-core 64.
struct Buffer {
  void* address;
  std::size_t bytes;
  ibv_pd* pd;
  int dmabuf_fd;  ///< -1: none
};

/// struct ibv_dmah_init_attr. Where data goes in the caches of a CPU is for the
/// bus to say, so that only the values are checked.
struct DmaHandleRequest {
  std::uint32_t comp_mask;
  std::uint32_t cpu_id;
  std::uint8_t ph;
  std::uint8_t tph_mem_type;
};
struct DmaHandle {
  ibv_context* context;
};

/// struct ibv_mr_init_attr.
struct MrRequest {
  std::size_t length;
  int access;
  std::uint64_t comp_mask;
  std::uint64_t iova;
  void* addr;
  int fd;
  std::uint64_t fd_offset;
  DmaHandle* dmah;
  Buffer* buf;
};

/// The memory, or null and errno.
void* make_buffer(ibv_pd* pd, std::size_t bytes, Buffer*& made);
void free_buffer(Buffer* buffer);
DmaHandle* make_dma_handle(ibv_context* context, const DmaHandleRequest& request);
void free_dma_handle(DmaHandle* handle);
ibv_mr* make_requested_mr(ibv_pd* pd, MrRequest request);
/// Reads as zeros, and takes what is written to it, at any address.
ibv_mr* make_null_mr(ibv_pd* pd);

}  // namespace gdrperf::softnic
