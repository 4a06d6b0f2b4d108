#include "app/intervals/interval_sum.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace gdrperf::app {
namespace {

using engine::IntervalState;

double end_of(const IntervalState& state) { return state.start_s + state.seconds; }

}  // namespace

bool IntervalSum::begun() const {
  return std::none_of(told_.begin(), told_.end(), [](const auto& each) { return each.empty(); });
}

double IntervalSum::covered_s() const { return *std::min_element(end_s_.begin(), end_s_.end()); }

std::vector<IntervalState> IntervalSum::add(std::size_t part, const IntervalState& state) {
  told_[part].push_back(state);
  end_s_[part] = end_of(state);
  for (engine::Dip dip : state.dips) {
    dip.part = names_[part];
    dips_.push_back(std::move(dip));
  }
  std::vector<IntervalState> whole;
  if (from_s_ < 0) {
    if (!begun()) return whole;
    for (const auto& each : told_) from_s_ = std::max(from_s_, each.front().start_s);
  }
  while (true) {
    const double to_s = (std::floor(from_s_ / seconds_ + 1e-9) + 1) * seconds_;
    if (covered_s() < to_s) return whole;
    whole.push_back(cell(from_s_, to_s));
  }
}

std::vector<IntervalState> IntervalSum::rest() {
  std::vector<IntervalState> rest;
  if (from_s_ >= 0 && covered_s() > from_s_) rest.push_back(cell(from_s_, covered_s()));
  return rest;
}

IntervalState IntervalSum::cell(double from_s, double to_s) {
  IntervalState sum;
  sum.start_s = from_s;
  sum.seconds = to_s - from_s;
  sum.slowest_per_s = 0;
  for (std::size_t part = 0; part < told_.size(); ++part) {
    engine::PartInterval own{names_[part], 0};
    double slowest = -1;
    for (const IntervalState& each : told_[part]) {
      const double shared_s = std::min(end_of(each), to_s) - std::max(each.start_s, from_s);
      if (shared_s <= 0) continue;
      own.messages += static_cast<double>(each.messages) * shared_s / each.seconds;
      slowest = slowest < 0 ? each.slowest_per_s : std::min(slowest, each.slowest_per_s);
      sum.test = each.test;
      sum.size_bytes = each.size_bytes;
    }
    sum.slowest_per_s += std::max(slowest, 0.0);
    sum.parts.push_back(std::move(own));
    while (!told_[part].empty() && end_of(told_[part].front()) <= to_s) told_[part].pop_front();
  }
  // Of each interval a whole number, of all together none too many or too few.
  messages_ += sum.unrounded_messages();
  const auto all = static_cast<std::uint64_t>(std::llround(messages_));
  sum.messages = all - std::exchange(told_messages_, all);
  const auto later = [&](const engine::Dip& dip) { return dip.start_s + dip.seconds > to_s; };
  const auto rest = std::stable_partition(dips_.begin(), dips_.end(), later);
  sum.dips.assign(std::make_move_iterator(rest), std::make_move_iterator(dips_.end()));
  dips_.erase(rest, dips_.end());
  from_s_ = to_s;
  return sum;
}

}  // namespace gdrperf::app
