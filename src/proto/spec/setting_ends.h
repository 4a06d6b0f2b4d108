#pragma once

#include "gdrperf/proto/settings.h"
#include "proto/spec/setting_access.h"
#include "proto/spec/setting_choices.h"

/// Rows of the option table that client and server both have.
namespace gdrperf::setting_rows {

using setting_access::to;
using T = TestSpec;
using E = EndSpec;
using S = StopRule;
using enum SettingType;

constexpr auto kClient = &T::client;
constexpr auto kServer = &T::server;
constexpr auto kStop = &T::stop;

// Rows that both ends have: each states what differs.
template <auto End>
constexpr Setting of_end(Setting row, const char* member, SettingAccess access, const char* placeholder) {
  row.object = End == kClient ? "client" : "server";
  row.group = End == kClient ? kOwnGroup : kPeerGroup;
  row.member = member;
  row.access = access;
  row.placeholder = placeholder;
  return row;
}

template <auto End>
constexpr Setting device(Setting row) {
  row.type = kName;
  row.range = kNameLength;
  return of_end<End>(row, "device", to<End, &E::device>(), "DEVICE");
}

template <auto End>
constexpr Setting port(Setting row) {
  row.range = {1, 255};
  row.rule = "a device's ports have the numbers {}";
  row.help = "its port (default: the first active one)";
  return of_end<End>(row, "port", to<End, &E::port>(), "N");
}

template <auto End>
constexpr Setting gid_index(Setting row) {
  row.range = {0, 65535};
  row.rule = "a GID has an index {}";
  return of_end<End>(row, "gid_index", to<End, &E::gid_index>(), "N");
}

template <auto End>
constexpr Setting buffer(Setting row) {
  row.type = kName;
  row.range = {1, kNameLength.high};
  return of_end<End>(row, "buffer", to<End, &E::buffer>(), "KIND");
}

template <auto End>
constexpr Setting buffer_given() {
  Setting row = of_end<End>({.type = kFlag, .wire = Wire::kMayMiss}, "buffer_given", to<End, &E::buffer_given>(), "");
  row.group = "";
  return row;
}

template <auto End>
constexpr Setting cpu(Setting row) {
  row.range = {0, 65535};
  row.rule = "a CPU has a number {}";
  return of_end<End>(row, "cpu", to<End, &E::cpu>(), "N");
}

template <auto End>
constexpr Setting numa(Setting row) {
  row.range = {0, 4095};
  row.rule = "a NUMA node has a number {}";
  row.help = "NUMA node of thread and host buffers (default: the NIC's)";
  row.wire = Wire::kMayMiss;
  return of_end<End>(row, "numa", to<End, &E::numa>(), "N");
}

}  // namespace gdrperf::setting_rows
