#pragma once

#include <cstddef>
#include <cstdint>

namespace gdrperf::softnic::gpu {

/// Pinned host memory for copies between a GPU and memory that it does not reach; there has to be a driver.
constexpr std::size_t kBounceBytes = 4u << 20;

/// When GPU memory is registered: on the first copy, a kernel of the program may run that waits for this very message,
/// and the driver's allocation would wait for that kernel.
void reserve_bounces() noexcept;

/// This thread's kBounceBytes; null where the driver has none left.
std::uint8_t* bounce() noexcept;

}  // namespace gdrperf::softnic::gpu
