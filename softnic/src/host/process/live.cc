#include "host/process/live.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "gdrperf/base/error.h"
#include "gdrperf/base/mutex.h"
#include "host/process/local.h"
#include "host/process/ports.h"
#include "shared/sync/thread.h"

namespace gdrperf::softnic {
namespace {

void set_port(LocalProcess& process, const Device& device, Device& port, bool up) {
  if (port.port_up.exchange(up) == up) return;
  process.for_each_qp([&](LocalQp& qp) {
    if (&qp.device() == &port) qp.set_port(up);
  });
  ibv_async_event event{};
  event.event_type = up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR;
  event.element.port_num = port.number;
  process.for_each_context([&](LocalContext& context) {
    if (&context.opened() == &device) context.raise(event);
  });
}

void change(LocalProcess& process, Device& device, const DeviceConfig& fresh) {
  const bool modelled = fresh.modelled() || device.model.load() != nullptr;
  for (unsigned number = 1; number <= device.port_count(); ++number) {
    Device& port = *device.port_at(number);
    port.change(fresh);
    if (!modelled) continue;
    // Asks another process, perhaps: not under a lock that this one's thread wants.
    process.ports().get(port.port_name);
    port.set_model();
  }
  if (modelled) {
    process.for_each_context([&](LocalContext& context) {
      if (&context.opened() == &device) context.follow_model();
    });
  }
  set_port(process, device, device, fresh.port_up);
  if (Device* const second = device.port_at(2)) set_port(process, device, *second, fresh.second_port_up.value_or(true));
}

void apply(LocalProcess& process) {
  static Mutex one_at_a_time;
  const MutexLock guard(one_at_a_time);
  const char* text = std::getenv("SOFTNIC");
  if (text == nullptr) return;
  try {
    const auto fresh = parse_config(text);
    for (const auto& device : devices()) {
      for (const DeviceConfig& config : fresh) {
        if (device->config.name == config.name && config.mode != DeviceMode::kNull) change(process, *device, config);
      }
    }
    // Only now: a QP needs the ports of both ends.
    process.for_each_qp([](LocalQp& qp) {
      if (qp.device().model.load() != nullptr) qp.follow_model();
    });
  } catch (const Error& error) {
    std::fprintf(stderr, "softnic: %s; nothing changes\n", error.what());
  }
}

}  // namespace

int LiveConfig::watch() {
  const char* text = std::getenv("SOFTNIC");
  if (text == nullptr || text[0] != '@') return -1;
  inotify_ = UniqueFd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  // The folder: a file that is replaced is another file.
  const std::string path = text + 1;
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  if (::inotify_add_watch(inotify_.get(), folder.c_str(), IN_CLOSE_WRITE | IN_MOVED_TO) < 0) inotify_.reset();
  return inotify_.get();
}

void LiveConfig::follow(LocalProcess& process) {
  alignas(inotify_event) char events[4096];
  while (::read(inotify_.get(), events, sizeof events) > 0) {
  }
  // Ports are asked for at the threads of other processes, which do this as well.
  const int error = start_thread("softnic-live", [&process] { apply(process); });
  if (error != 0)
    std::fprintf(stderr, "softnic: no thread to read the new configuration: %s; nothing changes\n",
                 std::strerror(error));
}

}  // namespace gdrperf::softnic
