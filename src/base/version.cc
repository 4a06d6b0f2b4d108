#include "gdrperf/base/version.h"

#include "git_revision.h"

namespace gdrperf {

// project() holds the version; the build hands it over.
const char* tool_version() { return GDRPERF_VERSION; }

const char* tool_git() { return kGitRevision; }

}  // namespace gdrperf
