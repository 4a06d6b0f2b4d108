#pragma once

#include <map>
#include <string>
#include <vector>

#include "gdrperf/doctor/doctor.h"

namespace gdrperf::doctor {

/// Facts that two ends compare: of the host ("" as device) and of each RDMA
/// device, by name ("active MTU", "firmware").
using Facts = std::map<std::string, std::map<std::string, Outside>>;

/// Reads files, asks libibverbs, and ethtool, mlnx_qos and dcb about each RoCE port of a
/// NIC, all at once: a server tells it when it starts.
Facts facts_of(const Machine& machine);

/// The devices one run used, and what is known of both hosts.
struct BothEnds {
  Facts here;
  Facts there;
  Outside here_device;
  Outside there_device;
};
/// Differences: FAIL where packets of one end do not fit the other, WARN where
/// the ends should be alike.
std::vector<Finding> compare_ends(const BothEnds& ends);

/// A short transfer one way.
struct Probe {
  Outside way;  ///< "to HOST", "from HOST"
  double gbytes = 0;
  double ceiling_gbytes = 0;  ///< 0: not known
  Outside limited_by;
};
std::vector<Finding> judge_probes(const std::vector<Probe>& probes);

}  // namespace gdrperf::doctor
