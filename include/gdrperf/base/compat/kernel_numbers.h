#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>

// Newer than the headers of some C libraries that this is built with (from glibc 2.28 on). An older kernel answers
// EINVAL or ENOSYS. The same on x86 and Arm.

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
