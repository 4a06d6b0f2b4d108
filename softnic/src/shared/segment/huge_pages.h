#pragma once

#include <cstddef>

/// Huge pages for a memfd. The kernel gives them on demand (MADV_COLLAPSE, Linux 6.1),
/// even where shmem_enabled is `never`, as it is on most distributions.
namespace gdrperf::softnic {

/// Address space for a memfd's mapping (MAP_FIXED), aligned to a huge page. Null: no room.
void* reserve_for_memfd(std::size_t bytes) noexcept;

/// Backs every whole, still empty huge page of [begin, begin + bytes), a mapping of a memfd
/// aligned as above. Where the kernel refuses, small pages come later as before.
void back_with_huge_pages(void* begin, std::size_t bytes) noexcept;

}  // namespace gdrperf::softnic
