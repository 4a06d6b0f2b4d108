#!/usr/bin/env python3
"""Runs a command in a network namespace of its own, on some CPUs: programs of one namespace share the software device's
ports, so that runs beside each other would share their rates as well.

usage: apart.py CPU,... COMMAND...   (as root)
"""

import ctypes
import fcntl
import os
import socket
import struct
import sys

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP = 1


def main():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        sys.exit(f"apart.py: no network namespace of its own: {os.strerror(ctypes.get_errno())}; run it as root")
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))
    os.sched_setaffinity(0, [int(cpu) for cpu in sys.argv[1].split(",")])
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
