#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "gdrperf/topo/matrix.h"

namespace gdrperf::topo {

/// Parses the output of `nvidia-smi topo -m` (or -mp), of any driver from the
/// 340s on, also with prompts, reports and terminal escapes around it, with
/// CRLF, with tabs turned into blanks, and with one prefix on every line.
///
/// Throws usage_error("`name`:LINE: ...", with a column where one cell is to
/// blame) unless every GPU of the header has one row with exactly one known
/// cell for each device, the diagonal is X, mirrored cells agree, and a NIC
/// legend, when there is one, names each NIC once. Time and memory are linear
/// in the text plus the square of at most 512 devices.
Matrix parse_nvidia_smi(std::string_view raw, std::string_view name);

/// Reads and parses a file ("-": standard input); files above 4 MiB are
/// refused. Throws Error(kUsage).
Matrix read_nvidia_smi_file(const std::string& path);

/// Output of `nvidia-smi topo -m` on this host; nothing when there is no nvidia-smi
/// on the PATH. No shell is involved. Throws Error(kEnvironment) when it fails
/// or does not end in time.
std::optional<std::string> run_nvidia_smi(
    std::chrono::milliseconds timeout = std::chrono::seconds(30));

}  // namespace gdrperf::topo
