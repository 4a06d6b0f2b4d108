#pragma once

#include <sys/socket.h>

#include <functional>
#include <string>
#include <vector>

#include "gdrperf/base/unique_fd.h"

/// Abstract socket names of this network namespace. They belong to whoever binds
/// them first, so nobody is believed for the name he has: who listens is asked of
/// the kernel, and one whose name a stranger took listens under that name and a
/// random part.
namespace gdrperf::softnic {

/// The user of the process at the other end, as the kernel knows it; a user
/// namespace that does not know him has no number: false.
bool peer_credentials(int socket, ucred& credentials) noexcept;
/// May this process have to do with that one? Only with its own user's.
bool is_own_user(const ucred& credentials) noexcept;

/// A socket that listens under `name`. Empty, with errno: EADDRINUSE when
/// somebody else does.
UniqueFd listen_at(const std::string& name, int backlog);
/// The same under `name` and a random part, which is appended to `name`.
UniqueFd listen_beside(std::string& name, int backlog);

/// Connects to the first process that listens under `name`, or under it and a
/// random part, and is `admitted`. Empty when there is none. Waits up to two
/// seconds for one that does not accept; the socket's own timeouts are that, too.
UniqueFd connect_to(const std::string& name, const std::function<bool(const ucred&)>& admitted);
/// Does a process of this user listen under `name`, or under it and a random
/// part, besides the one that does so under `except`? Waits for nobody.
bool is_taken(const std::string& name, const std::string& except = {});

/// Names in this network namespace under which somebody listens, as far as they
/// begin like this. They may be anybody's.
std::vector<std::string> names_beginning(const std::string& start);

}  // namespace gdrperf::softnic
