#pragma once

#include "app/doctor/doctor.h"
#include "gdrperf/doctor/doctor.h"

namespace gdrperf::app {

/// Both ends, through a running server: differences, and a short transfer each
/// way. Throws Error(kPeer) when the server cannot be had.
doctor::Examination examine_both_ends(const DoctorOptions& options);

/// `environment`, JSON text of this host, with what a doctor at the other end
/// compares: an Environment's readers pass over it.
std::string with_facts(const std::string& environment);

}  // namespace gdrperf::app
