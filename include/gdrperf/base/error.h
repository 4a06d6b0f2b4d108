#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace gdrperf {

/// Exit code of the process; also travels in protocol errors.
enum class ExitCode : int {
  kOk = 0,
  kRegression = 1,    ///< a compare or a check failed
  kUsage = 2,         ///< the command line or an input file is wrong
  kEnvironment = 3,   ///< this machine cannot do it (device, memory, limits)
  kInconclusive = 4,  ///< measured, but not enough to decide
  kPeer = 5,          ///< the other end failed or vanished, or data was wrong
  kSkipped = 77,      ///< a test that needs what is not here
};

/// The one exception of set-up code. `what()` names the cause and where it
/// happened; `hint()` says what to do about it (may be empty). Both are
/// printable_lines() of what they were made from: messages quote files, peers
/// and the environment. The hot loop never throws.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message, const std::string& hint = {});

  ExitCode code() const noexcept { return code_; }
  const std::string& hint() const noexcept { return hint_; }

  /// The same error with "`context`: " in front, for the callers that know
  /// more about where it happened.
  Error in(std::string_view context) const {
    return Error(code_, std::string(context) + ": " + what(), hint_);
  }

 private:
  ExitCode code_;
  std::string hint_;
};

/// Wrong input: message names the flag (or file and line) and what is accepted.
Error usage_error(const std::string& message, std::string hint = {});

/// A system or verbs call failed: "`device`: `call`: strerror(`errno_value`)".
/// `device` may be empty. Code kEnvironment.
Error call_error(std::string_view call, int errno_value, std::string_view device = {},
                 std::string hint = {});

/// The other end failed, vanished or spoke nonsense. Code kPeer.
Error peer_error(const std::string& message, std::string hint = {});

}  // namespace gdrperf
