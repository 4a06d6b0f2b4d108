#pragma once

namespace gdrperf {

/// The version in project(), "0.1.0".
const char* tool_version();

/// `git describe` of the tree this was built from, with "-dirty" when it had
/// changes; "unknown" where there was no git.
const char* tool_git();

}  // namespace gdrperf
