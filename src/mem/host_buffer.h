#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "gdrperf/mem/buffer.h"

namespace gdrperf::mem {

/// Common part of memory that the CPU reaches, whoever owns it.
class CpuBuffer : public Buffer {
 public:
  std::byte* data() override { return data_; }
  std::size_t size() const override { return size_; }
  const std::string& kind() const override { return kind_; }
  bool cpu_reachable() const override { return true; }
  verbs::Mr register_with(ibv_pd* pd, int access) override;
  const std::string& registration() const override { return registration_; }
  void fill(const PatternRun& run) override { fill_pattern(data_, run); }
  CheckResult check(const PatternRun& run) override { return check_pattern(data_, run); }
  const std::string& checker() const override;

 protected:
  CpuBuffer(std::string kind, std::size_t bytes) : kind_(std::move(kind)), size_(bytes) {}

  std::byte* data_ = nullptr;

 private:
  std::string kind_;
  std::string registration_;
  std::size_t size_;
};

/// Advice where memory ran out.
std::string less_memory_hint();

/// "host" and "hugepage".
std::unique_ptr<Buffer> make_host_buffer(std::size_t bytes);
std::unique_ptr<Buffer> make_hugepage_buffer(std::size_t bytes);
bool hugepages_at_hand();

}  // namespace gdrperf::mem
