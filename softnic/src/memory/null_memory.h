#pragma once

#include <cstdint>

/// Memory behind a null MR: for one message of any size, once to be read
/// (zeros) and once to be written and forgotten. Made for the first null MR.
namespace gdrperf::softnic {

/// False: there is no room for it.
bool prepare_null_memory();
/// Null before.
std::uint8_t* null_memory_to_read() noexcept;
std::uint8_t* null_memory_to_write() noexcept;

}  // namespace gdrperf::softnic
