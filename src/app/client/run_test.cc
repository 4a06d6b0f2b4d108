#include "app/client/run_test.h"

#include "app/client/parts.h"
#include "app/client/under_load.h"

namespace gdrperf::app {

report::RunRecord run_test(Client& client, const TestSpec& spec) {
  if (has_parts(spec)) return run_parts(client, spec);
  return spec.load.empty() ? client.run_alone(spec, client.terms()) : run_under_load(client, spec);
}

}  // namespace gdrperf::app
