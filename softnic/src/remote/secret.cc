#include "remote/secret.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#ifdef GDRPERF_NETTLE
#include <nettle/hmac.h>
#include <nettle/memops.h>
#endif

#include "gdrperf/base/unique_fd.h"

namespace gdrperf::softnic {
namespace {

constexpr std::size_t kKeyBytes = 32;

/// Written whole under another name first, so that nobody reads half of it.
void make_key(const std::string& path) {
  std::uint8_t key[kKeyBytes];
  if (::getrandom(key, sizeof key, 0) != sizeof key) return;
  const std::string fresh = fmt::format("{}.{}", path, ::getpid());
  {
    const UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file || ::write(file.get(), key, sizeof key) != sizeof key) return;
  }
  [[maybe_unused]] const int linked = ::link(fresh.c_str(), path.c_str());
  ::unlink(fresh.c_str());
}

/// HMAC-SHA-256; `role` keeps one end's words from being repeated as another's.
void sign(const std::string& secret, const std::string& role, std::span<const std::uint8_t> first,
          std::span<const std::uint8_t> second, std::uint8_t (&proof)[kProofBytes]) {
#ifdef GDRPERF_NETTLE
  hmac_sha256_ctx context;
  hmac_sha256_set_key(&context, secret.size(), reinterpret_cast<const std::uint8_t*>(secret.data()));
  hmac_sha256_update(&context, role.size() + 1, reinterpret_cast<const std::uint8_t*>(role.c_str()));
  hmac_sha256_update(&context, first.size(), first.data());
  hmac_sha256_update(&context, second.size(), second.data());
  hmac_sha256_digest(&context, sizeof proof, proof);
#else
  static_cast<void>(secret), static_cast<void>(role), static_cast<void>(first), static_cast<void>(second);
  std::memset(proof, 0, sizeof proof);
#endif
}

}  // namespace

std::string users_key(std::string& obstacle) {
  const std::string path = fmt::format("/dev/shm/gdrperf-softnic-key.{}", ::geteuid());
  for (int tries = 0; tries < 2; ++tries) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!file && errno == ENOENT && tries == 0) {
      make_key(path);
      continue;
    }
    struct stat facts {};
    std::string key(kKeyBytes, '\0');
    if (!file || ::fstat(file.get(), &facts) != 0) {
      obstacle = fmt::format("{}: {}", path, std::strerror(errno));
    } else if (!S_ISREG(facts.st_mode) || facts.st_uid != ::geteuid() || (facts.st_mode & 077) != 0 ||
               ::read(file.get(), key.data(), key.size()) != static_cast<ssize_t>(key.size())) {
      obstacle = fmt::format("{} is no file of {} bytes that this user alone has", path, kKeyBytes);
    } else {
      return key;
    }
  }
  return {};
}

std::string secret_of(const DeviceConfig& device, std::string& obstacle) {
  if (!can_prove()) {
    obstacle = "this library was built without nettle";
    return {};
  }
  return !device.token.empty() ? device.token : users_key(obstacle);
}

void prove(ProofOf end, const std::string& secret, const TcpHello& hello, const std::uint8_t (&nonce)[kNonceBytes],
           std::uint8_t (&proof)[kProofBytes]) {
  sign(secret, end == ProofOf::kConnector ? "softnic tcp connector" : "softnic tcp listener",
       {reinterpret_cast<const std::uint8_t*>(&hello), sizeof hello}, nonce, proof);
}

void prove_datagram(const std::string& secret, std::span<const std::uint8_t> head, std::span<const std::uint8_t> data,
                    std::uint8_t (&proof)[kProofBytes]) {
  sign(secret, "softnic datagram", head, data, proof);
}

bool same_proof(const std::uint8_t (&one)[kProofBytes], const std::uint8_t (&other)[kProofBytes]) {
#ifdef GDRPERF_NETTLE
  return nettle_memeql_sec(one, other, kProofBytes) != 0;
#else
  return std::memcmp(one, other, kProofBytes) == 0;
#endif
}

bool can_prove() {
#ifdef GDRPERF_NETTLE
  return true;
#else
  return false;
#endif
}

}  // namespace gdrperf::softnic
