#pragma once

namespace gdrperf::softnic {

struct Context;

/// Fills the function tables that verbs' inline functions go through.
void fill_verbs_ops(Context& context);
/// The data path of a context that a forked child inherited: every call fails.
void fill_dead_ops(Context& context);

}  // namespace gdrperf::softnic
