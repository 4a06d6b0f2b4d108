#pragma once

#include <string>

namespace gdrperf::softnic {

struct Device;

/// Ways of data of this process's memory, for readers of the class file
/// `data_path`: lines of "WAY STATE WORDS". WAY is window, kernel, agent, gpu
/// or tcp; STATE is `first` for what is tried first, `fallback` for what comes
/// after it, `off` for what cannot be used, and then the words say why.
std::string data_path_text(const Device& device);

}  // namespace gdrperf::softnic
