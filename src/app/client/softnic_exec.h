#pragma once

#include <string>

namespace gdrperf::app {

/// For `--softnic`: unless the software device is loaded already, puts its
/// library in front of LD_PRELOAD and executes this program again with the same
/// arguments; returns only when it is loaded. To be called before any thread is
/// started. Throws Error(kEnvironment) when the library is not found (naming
/// the places looked at) or did not come up.
void enter_softnic(char** argv);

/// The same with `devices` as the value of SOFTNIC (softnic/docs/softnic.md), whatever
/// that was before.
void enter_softnic_with(char** argv, const std::string& devices);

/// Path of the software device's library, "" when it is in none of the places
/// where a build or an installation puts it.
std::string softnic_library();

/// Value of LD_PRELOAD with `library` in front; unchanged when it is there.
std::string preload_with(const std::string& library, const std::string& preload);

}  // namespace gdrperf::app
