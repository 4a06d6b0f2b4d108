#pragma once

#include <string>

namespace gdrperf {

/// The same text in all processes of one running kernel, containers included,
/// and another on every other machine and after every boot. A digest: it says
/// nothing about the machine. Where the kernel tells no boot ID, this process's own.
const std::string& host_identity();

/// Path of the program that this process runs, without links: by /proc, or, where that is not mounted, as the kernel
/// was told (AT_EXECFN). Empty where neither leads to a file.
std::string own_program();

}  // namespace gdrperf
