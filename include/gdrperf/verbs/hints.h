#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <memory>
#include <string>

#include "gdrperf/verbs/resources.h"

namespace gdrperf::verbs {

namespace detail {
struct DmaHandleDeleter {
  void operator()(void* handle) const noexcept;
};
}  // namespace detail

/// What ibv_alloc_dmah() gives; rdma-core 60 has it, and it is looked for when it is needed. Outlives its regions.
using DmaHandle = std::unique_ptr<void, detail::DmaHandleDeleter>;

/// TLP processing hints as they are typed (proto/hints.h); null for "". Throws Error that names the function or the
/// device that lacks them.
DmaHandle make_dma_handle(ibv_context* context, const std::string& hints);

/// ibv_reg_mr_ex() of host memory with such a handle. Throws Error.
Mr register_hinted(ibv_pd* pd, void* address, std::size_t bytes, int access, void* handle);

}  // namespace gdrperf::verbs
