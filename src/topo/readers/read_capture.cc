#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/unique_fd.h"
#include "gdrperf/topo/readers.h"

namespace gdrperf::topo {

std::string read_capture(const std::string& path, std::size_t max_bytes) {
  const std::string name = path == "-" ? "standard input" : path;
  const auto failed = [&] {
    return usage_error(fmt::format("{}: {}", name, std::generic_category().message(errno)));
  };
  const UniqueFd fd(path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) throw failed();
  std::string content;
  std::array<char, 65536> block;
  while (true) {
    const ssize_t got = ::read(fd.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw failed();
    if (got == 0) return content;
    content.append(block.data(), static_cast<std::size_t>(got));
    if (content.size() <= max_bytes) continue;
    std::size_t line = 1;
    for (std::size_t at = content.find('\n'); at != std::string::npos; at = content.find('\n', at + 1)) ++line;
    const std::size_t start = content.rfind('\n');
    const std::size_t column = content.size() - (start == std::string::npos ? 0 : start + 1);
    throw usage_error(fmt::format("{}:{}:{}: larger than {} MiB, which no recorded topology is",
                                  name, line, column, max_bytes >> 20));
  }
}

}  // namespace gdrperf::topo
