#pragma once

#include <cstddef>
#include <cstdint>

/// Of what memory the dma-bufs are that CUDA gave this program: a dma-buf alone does not say it.
namespace gdrperf::softnic {

void remember_dmabuf(int dmabuf, void* address, std::size_t bytes);
/// Null: no dma-buf of those, or a part beyond its end.
void* find_dmabuf(int dmabuf, std::uint64_t offset, std::uint64_t bytes);

}  // namespace gdrperf::softnic
