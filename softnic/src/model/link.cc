#include "model/link.h"

namespace gdrperf::softnic {

LinkModel make_link_model(const LinkConfig& config, const Clock& clock) {
  LinkModel model;
  model.latency = from_ns(clock, config.latency_ns);
  model.ack = from_ns(clock, config.ack_ns);
  model.react = from_ns(clock, config.react_ns);
  model.mtu = config.mtu;
  model.edges_only = config.edges_only;
  const auto per_byte = [&](double rate) {
    return rate > 0 ? 1e9 / rate / clock.ns_per_tick() * (1u << kSubTickBits) : 0;
  };
  model.strict_per_byte = per_byte(config.strict_rate);
  model.slow_sport = config.slow_sport;
  model.slow_sport_per_byte = per_byte(config.slow_sport_rate);
  return model;
}

void publish_speed(const LinkConfig& config, const Clock& clock, PortSpeed& speed) {
  const double ns_per_byte = config.rate > 0 ? 1e9 / config.rate * config.slow : 0;
  speed.instants_per_byte = ns_per_byte / clock.ns_per_tick() * (1u << kSubTickBits);
  speed.per_message = from_ns(clock, config.per_message_ns * config.slow);
  speed.header = config.header;
  speed.ingress = config.ingress;
}

}  // namespace gdrperf::softnic
