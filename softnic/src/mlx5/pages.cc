#include "mlx5/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <set>

namespace gdrperf::softnic::mlx5 {
namespace {

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

Buffer::Buffer(std::size_t bytes) : size_((bytes + page_bytes() - 1) / page_bytes() * page_bytes()) {
  void* const got = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::uint8_t*>(got);
}

Buffer::~Buffer() { ::munmap(data_, size_); }

namespace {

/// Of this process.
struct AllPages {
  Mutex mutex;
  std::set<const DoorbellPage*> pages GUARDED_BY(mutex);
};
AllPages& all_pages() {
  static AllPages& all = *new AllPages();
  return all;
}

}  // namespace

DoorbellPage::DoorbellPage(std::uint32_t page_number) : number(page_number), memory(page_bytes()) {
  const MutexLock guard(all_pages().mutex);
  all_pages().pages.insert(this);
}

DoorbellPage::~DoorbellPage() {
  const MutexLock guard(all_pages().mutex);
  all_pages().pages.erase(this);
}

bool DoorbellPage::has(const void* address, std::size_t bytes) {
  const MutexLock guard(all_pages().mutex);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (const DoorbellPage* it : all_pages().pages) {
    const auto from = reinterpret_cast<std::uintptr_t>(it->base());
    if (at >= from && at - from <= it->memory.size() && bytes <= it->memory.size() - (at - from)) return true;
  }
  return false;
}

bool DoorbellPage::rung() noexcept {
  bool changed = false;
  for (unsigned i = 0; i < kRegistersPerPage * 2; ++i) {
    auto* word = reinterpret_cast<std::uint64_t*>(reg(i / 2) + i % 2 * kRegisterBuffer);
    const std::atomic_ref doorbell(*word);
    if (doorbell.load(std::memory_order_relaxed) == 0) continue;
    // No WQE begins with zeros. Taken away, so that the same value is seen when it comes again.
    doorbell.exchange(0, std::memory_order_acquire);
    changed = true;
  }
  return changed;
}

std::shared_ptr<DoorbellPage> Pages::shared_page(unsigned which) {
  while (shared_.size() <= which) shared_.push_back(std::make_shared<DoorbellPage>(++pages_made_));
  return shared_[which];
}

Pages::Register Pages::next_register() {
  const MutexLock guard(mutex_);
  const unsigned next = registers_given_++ % (kSharedPages * kRegistersPerPage);
  return {shared_page(next / kRegistersPerPage), next % kRegistersPerPage};
}

std::shared_ptr<DoorbellPage> Pages::first_page() {
  const MutexLock guard(mutex_);
  return shared_page(0);
}

std::shared_ptr<DoorbellPage> Pages::make_page() {
  const MutexLock guard(mutex_);
  auto page = std::make_shared<DoorbellPage>(++pages_made_);
  std::erase_if(own_, [](const auto& it) { return it.expired(); });
  own_.push_back(page);
  return page;
}

std::shared_ptr<DoorbellPage> Pages::page(std::uint32_t number) {
  const MutexLock guard(mutex_);
  for (const auto& it : shared_) {
    if (it->number == number) return it;
  }
  for (const auto& it : own_) {
    if (auto found = it.lock(); found != nullptr && found->number == number) return found;
  }
  return nullptr;
}

std::uint32_t* Pages::take_record() {
  const MutexLock guard(mutex_);
  if (free_records_.empty()) {
    record_pages_.push_back(std::make_unique<Buffer>(page_bytes()));
    std::uint8_t* const base = record_pages_.back()->data();
    for (std::size_t at = page_bytes(); at > 0; at -= kRecordBytes) {
      free_records_.push_back(reinterpret_cast<std::uint32_t*>(base + at - kRecordBytes));
    }
  }
  std::uint32_t* const record = free_records_.back();
  free_records_.pop_back();
  store_record(record, 0);
  store_record(record + 1, 0);
  return record;
}

void Pages::give_back(std::uint32_t* record) noexcept {
  const MutexLock guard(mutex_);
  free_records_.push_back(record);
}

}  // namespace gdrperf::softnic::mlx5
