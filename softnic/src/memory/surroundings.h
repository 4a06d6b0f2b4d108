#pragma once

#include "memory/page_range.h"

/// What in this process stands against moving its pages.
namespace gdrperf::softnic {

/// The calling thread and the control thread are all there is. Allocates nothing: an
/// allocator's thread may wait for this one.
bool alone();
/// Go's allocator gives memory back by system calls of its own, which nothing here sees, and
/// counts on zeros afterwards.
bool go_loaded();
/// cudaHostRegister pins pages without a trace that a program can find.
bool cuda_loaded();

/// What libc keeps of the calling thread, in bytes: its control block, static TLS, and the area of restartable
/// sequences, to which the kernel writes whenever the thread is moved.
PageRange kept_of_thread();

}  // namespace gdrperf::softnic
