// The one place where a run's way of data becomes code.
#include "engine/transfer/data_path.h"

#include "engine/transfer/staging_end.h"
#include "engine/transfer/streaming_end.h"

namespace gdrperf::engine {
namespace {

struct Way {
  QueueDemand (*queues)(const ResolvedSpec& spec, conn::Side side);
  std::unique_ptr<LocalEnd> (*make_end)(EndInput input);
};

template <typename End>
std::unique_ptr<LocalEnd> made(EndInput input) {
  return std::make_unique<End>(std::move(input));
}

const Way& way_of(const ResolvedSpec& spec) {
  static constexpr Way kStreaming = {StreamingEnd::queues, made<StreamingEnd>};
  static constexpr Way kStaging = {StagingEnd::queues, made<StagingEnd>};
  return spec.data_path() == DataPath::kStaging ? kStaging : kStreaming;
}

}  // namespace

QueueDemand queues_of(const ResolvedSpec& spec, conn::Side side) { return way_of(spec).queues(spec, side); }

std::unique_ptr<LocalEnd> make_end(EndInput input) {
  const Way& way = way_of(input.spec);
  return way.make_end(std::move(input));
}

}  // namespace gdrperf::engine
