#pragma once

namespace gdrperf {

/// Opens those of descriptors 0 to 2 that the caller had closed, on /dev/null in the direction nobody
/// uses: the next socket or file must not become standard output or error, yet what is written there
/// fails as it did. To be called first of all.
void occupy_standard_descriptors() noexcept;

}  // namespace gdrperf
