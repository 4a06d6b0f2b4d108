#include "objects/attributes/context.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "cm/links/tcp_ports.h"
#include "mlx5/nic.h"
#include "shared/sync/event_fd.h"
#include "shared/sync/limited.h"
#include "transport/ud/ud_arrivals.h"

namespace gdrperf::softnic {
namespace {

constexpr const char* kCommandName = "softnic-command";

void add_one(int fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd, &one, sizeof one);
}

}  // namespace

Context::Context(Device& opened, const ContextOps& functions)
    : verbs_context{}, device(opened), process(Process::get()),
      nic(opened.config.mlx5 ? std::make_unique<mlx5::Nic>() : nullptr), functions_(functions) {
  // Some programs stat cmd_fd or duplicate it for ibv_import_device; it must be
  // a descriptor, and one that can be told from others.
  context.cmd_fd = ::memfd_create(kCommandName, MFD_CLOEXEC);
  context.async_fd = ::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  if (context.cmd_fd < 0 || context.async_fd < 0) {
    const int error = errno;
    if (context.cmd_fd >= 0) ::close(context.cmd_fd);
    throw CallFailure("memfd_create, eventfd", error);
  }
  context.device = &device;
  context.num_comp_vectors = kCompletionVectors;
  ::pthread_mutex_init(&context.mutex, nullptr);
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  sz = sizeof(verbs_context);
  functions_.live(*this);
  publish_ports();
  if (modelled()) follow_model();
  if (device.config.tcp_port != 0) {
    pass_on_cm(process.hub());
    take_datagrams(process);
    process.hub().open(device.config.tcp_port);
  }
  process.add(this);
}

/// The first context of a device writes, before others can know of the port. When a later one is opened, they may be
/// reading.
void Context::publish_ports() {
  static Mutex one_at_a_time;
  const MutexLock guard(one_at_a_time);
  SegmentHeader& header = process.segment().header;
  for (unsigned number = 1; number <= device.port_count(); ++number) {
    const Device& port = *device.port_at(number);
    char(&name)[sizeof header.port_names[0]] = header.port_names[port.index];
    if (name[0] != '\0') continue;
    for (std::uint32_t entry = 0; entry < kGidsPerPort; ++entry) header.gids[port.index][entry] = port.gid(entry);
    std::strncpy(name, port.port_name.c_str(), sizeof name - 1);
  }
}

void Context::follow_model() {
  for (unsigned number = 1; number <= device.port_count(); ++number) {
    Device& port = *device.port_at(number);
    PortShared& shared = process.ports().get(port.port_name);
    port.port.store(&shared);
    publish_speed(port.link(), Clock::get(), shared.speed);
    process.segment().header.modelled[port.index].store(1);
  }
  functions_.post_send(*this);
}

Context::~Context() {
  process.remove(this);
  ::close(context.cmd_fd);
  ::close(context.async_fd);
  ::pthread_mutex_destroy(&context.mutex);
}

void Context::cut_off() { functions_.dead(*this); }

void Context::raise(const ibv_async_event& event) {
  {
    const MutexLock guard(mutex_);
    events_.push_back(event);
  }
  add_one(context.async_fd);
}

int Context::next_event(ibv_async_event& event) {
  while (true) {
    const int error = take_one(context.async_fd);
    if (error != 0) return error;
    const MutexLock guard(mutex_);
    if (events_.empty()) continue;
    event = events_.front();
    events_.pop_front();
    return 0;
  }
}

void Context::drop_events(const void* element) {
  const MutexLock guard(mutex_);
  for (auto event = events_.begin(); event != events_.end();) {
    if (event->element.qp != element) {
      ++event;
      continue;
    }
    take_one_if_there(context.async_fd);
    event = events_.erase(event);
  }
}

bool is_command_descriptor(int fd) {
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const std::string ours = std::string("/memfd:") + kCommandName;
  char target[64];
  const ssize_t length = ::readlink(link.c_str(), target, sizeof target);
  return length > 0 && std::string_view(target, static_cast<std::size_t>(length)).starts_with(ours);
}

bool is_soft(const ibv_context* context) { return soft_device(context->device) != nullptr; }

}  // namespace gdrperf::softnic
