// The one place where a run's way of data becomes code.
#include "engine/transfer/data_path.h"

#include "engine/transfer/staging_end.h"
#include "engine/transfer/streaming_end.h"

namespace gdrperf::engine {
namespace {

struct DataPathMakers {
  QueueDemand (*queues)(const ResolvedSpec& spec, conn::Side side);
  std::unique_ptr<LocalEnd> (*make_end)(EndInput input);
};

template <typename End>
std::unique_ptr<LocalEnd> made(EndInput input) {
  return std::make_unique<End>(std::move(input));
}

const DataPathMakers& makers_for(const ResolvedSpec& spec) {
  static constexpr DataPathMakers kStreaming = {StreamingEnd::queues, made<StreamingEnd>};
  static constexpr DataPathMakers kStaging = {StagingEnd::queues, made<StagingEnd>};
  return spec.data_path() == DataPath::kStaging ? kStaging : kStreaming;
}

}  // namespace

QueueDemand queues_of(const ResolvedSpec& spec, conn::Side side) { return makers_for(spec).queues(spec, side); }

std::unique_ptr<LocalEnd> make_end(EndInput input) {
  const DataPathMakers& makers = makers_for(input.spec);
  return makers.make_end(std::move(input));
}

}  // namespace gdrperf::engine
