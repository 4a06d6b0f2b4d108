#pragma once

namespace gdrperf::softnic {

/// A verbs call that fails with an errno, on its way to the caller.
struct VerbsFailure {
  int error;
};

}  // namespace gdrperf::softnic
