#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace gdrperf::softnic {

/// Shared memory of the program (MAP_SHARED), mapped once more for the device: it stays
/// when the program unmaps its own, as a NIC's pinned pages do.
class SecondMapping {
 public:
  SecondMapping() = default;
  /// Empty where it is not one mapping of shared memory, or the kernel refuses.
  SecondMapping(std::uint64_t address, std::size_t length);
  SecondMapping(SecondMapping&& other) noexcept { *this = std::move(other); }
  SecondMapping& operator=(SecondMapping&& other) noexcept;
  ~SecondMapping();

  bool empty() const noexcept { return bytes_ == 0; }
  /// What the constructor was given, here.
  std::uint64_t address() const noexcept { return address_; }
  /// Nobody can take its pages away: no file that could be truncated is behind it.
  bool lasts() const noexcept { return lasts_; }

 private:
  std::uint64_t address_ = 0;
  std::uint64_t pages_ = 0;
  std::uint64_t bytes_ = 0;
  bool lasts_ = false;
};

}  // namespace gdrperf::softnic
