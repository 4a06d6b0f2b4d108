#pragma once

#include <string>
#include <string_view>

#include "gdrperf/proto/spec.h"

/// Readers of words that are no plain value of one member, for rows of the option table (Setting::take). They throw
/// usage_error, naming `flag`.
namespace gdrperf::setting_rows {

void take_peer_buffer(TestSpec& spec, const std::string& text, std::string_view flag);
void take_transport(TestSpec& spec, const std::string& text, std::string_view flag);
void take_any_group(TestSpec& spec, const std::string& text, std::string_view flag);
void take_group(TestSpec& spec, const std::string& text, std::string_view flag);
void take_rate(TestSpec& spec, const std::string& text, std::string_view flag);
void take_load(TestSpec& spec, const std::string& text, std::string_view flag);
void take_gpu(TestSpec& spec, const std::string& text, std::string_view flag);
void take_rocm(TestSpec& spec, const std::string& text, std::string_view flag);
void take_hugepages(TestSpec& spec, const std::string& text, std::string_view flag);
void take_dmabuf(TestSpec& spec, const std::string& text, std::string_view flag);
void take_data_direct(TestSpec& spec, const std::string& text, std::string_view flag);
void take_ooo(TestSpec& spec, const std::string& text, std::string_view flag);
void take_in_order(TestSpec& spec, const std::string& text, std::string_view flag);
void take_ipv6(TestSpec& spec, const std::string& text, std::string_view flag);
void take_strict(TestSpec& spec, const std::string& text, std::string_view flag);
void take_flow_labels(TestSpec& spec, const std::string& text, std::string_view flag);
void take_source_ports(TestSpec& spec, const std::string& text, std::string_view flag);
void take_lag_ports(TestSpec& spec, const std::string& text, std::string_view flag);
void take_verify(TestSpec& spec, const std::string& text, std::string_view flag);

}  // namespace gdrperf::setting_rows
