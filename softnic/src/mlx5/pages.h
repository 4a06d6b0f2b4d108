#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gdrperf/base/mutex.h"
#include "mlx5/format.h"

/// Memory that a program, or a GPU, shares with the device: rings, doorbell records, doorbells. It
/// begins with a page each, so that it can be registered with CUDA.
namespace gdrperf::softnic::mlx5 {

/// Zeroed memory of its own pages.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes);  // throws std::bad_alloc
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::uint8_t* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

 private:
  std::uint8_t* data_;
  std::size_t size_;
};

/// A page of doorbells. Its words are memory: of several stores before the device looks, the last one stays.
struct DoorbellPage {
  std::uint32_t number;
  Buffer memory;

  explicit DoorbellPage(std::uint32_t page_number);
  ~DoorbellPage();
  /// All of it is in a page of doorbells of this process.
  static bool has(const void* address, std::size_t bytes);
  std::uint8_t* base() const noexcept { return memory.data(); }
  std::uint8_t* reg(unsigned which) const noexcept { return base() + kRegisterAt + which * kRegisterStride; }
  /// Was a register of it written to since the last call?
  bool rung() noexcept;
};

/// Of an open device: the doorbell pages, and pages of doorbell records. Thread-safe.
class Pages {
 public:
  /// Register for the next QP: pages are shared, as by rdma-core's provider.
  struct Register {
    std::shared_ptr<DoorbellPage> page;
    unsigned which;
  };
  Register next_register();
  std::shared_ptr<DoorbellPage> first_page();
  /// A page of its own.
  std::shared_ptr<DoorbellPage> make_page();
  /// Null: there is none of that number.
  std::shared_ptr<DoorbellPage> page(std::uint32_t number);

  /// A record of two words, both 0.
  std::uint32_t* take_record();
  void give_back(std::uint32_t* record) noexcept;

 private:
  std::shared_ptr<DoorbellPage> shared_page(unsigned which) REQUIRES(mutex_);

  static constexpr unsigned kSharedPages = 8;
  Mutex mutex_;
  std::vector<std::shared_ptr<DoorbellPage>> shared_ GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<DoorbellPage>> own_ GUARDED_BY(mutex_);
  unsigned registers_given_ GUARDED_BY(mutex_) = 0;
  std::uint32_t pages_made_ GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<Buffer>> record_pages_ GUARDED_BY(mutex_);
  std::vector<std::uint32_t*> free_records_ GUARDED_BY(mutex_);
};

}  // namespace gdrperf::softnic::mlx5
