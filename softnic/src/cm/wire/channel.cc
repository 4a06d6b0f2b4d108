#include "cm/wire/channel.h"

#include <sys/socket.h>

namespace gdrperf::softnic {

void CmChannel::push(const CmEvent& event) {
  events.push_back(event);
  if (readable) return;
  const char byte = 0;
  readable = ::send(own.get(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

void CmChannel::settle(int fd) {
  if (!readable || !events.empty()) return;
  char byte;
  readable = ::recv(fd, &byte, 1, MSG_DONTWAIT) != 1;
}

}  // namespace gdrperf::softnic
