#pragma once

#include <cstdint>

/// Tells which of a program's descriptors are channels of rdma_cm. Nothing tells when a
/// program closes one, so who finds an entry asks the kernel whether it still holds.
namespace gdrperf::softnic {

/// False: a number beyond what is kept.
bool remember_channel(int fd) noexcept;
/// The channel's number, or 0. Asks the kernel only about descriptors that were channels once.
std::uint64_t channel_behind(int fd) noexcept;

}  // namespace gdrperf::softnic
