"""Two network namespaces with a cable between them, for tests and benchmarks of the software device
over TCP. They go when the program does."""

import atexit
import os
import subprocess
import time

ADDRESSES = ("10.77.0.1", "10.77.0.2")
IPV6_ADDRESSES = ("fd77::1", "fd77::2")
# Of a second cable, which has no others.
IPV6_ONLY = ("fd78::1", "fd78::2")


class NotAllowed(Exception):
    """This machine makes no network namespaces for this user; says why."""


class Hosts:
    """`command(host, words)` is `words` in namespace 0 or 1; `ipv6`: they have IPv6 addresses as well."""

    def __init__(self):
        self.holders = []
        self.user_namespace = False
        self.ipv6 = False
        atexit.register(self.close)
        try:
            self._make()
        except (OSError, subprocess.CalledProcessError) as error:
            self.close()
            said = getattr(error, "stderr", None) or str(error)
            raise NotAllowed(f"no network namespaces here: {said.strip()}") from error

    def _hold(self, words):
        """A process that keeps a namespace alive, once it is in it."""
        holder = subprocess.Popen([*words, "sh", "-c", "echo ready; exec sleep 100000"], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if holder.stdout.readline().strip() != "ready":
            holder.wait()
            raise OSError(holder.stderr.read() or "unshare failed")
        self.holders.append(holder)

    def _make(self):
        try:
            self._hold(["unshare", "-n"])
        except OSError:
            self._hold(["unshare", "-Urn"])
            self.user_namespace = True
        self._hold([*self._as_user(), "unshare", "-n"])
        there = str(self.holders[1].pid)
        for cable in ("cable0", "cable6"):
            self._run(0, "ip", "link", "add", cable, "type", "veth", "peer", "name", cable, "netns", there)
        for host, address in enumerate(ADDRESSES):
            self._run(host, "ip", "address", "add", f"{address}/24", "dev", "cable0")
            for link in ("lo", "cable0", "cable6"):
                self._run(host, "ip", "link", "set", link, "up")
        self.ipv6 = all(self._try(host, "ip", "address", "add", f"{addresses[host]}/64", "dev", cable, "nodad")
                        for host in (0, 1) for cable, addresses in (("cable0", IPV6_ADDRESSES), ("cable6", IPV6_ONLY)))

    def _as_user(self):
        return ["nsenter", "-t", str(self.holders[0].pid), "-U",
                "--preserve-credentials"] if self.user_namespace else []

    def command(self, host, words):
        enter = ["nsenter", "-t", str(self.holders[host].pid), "-n"]
        if self.user_namespace:
            enter += ["-U", "--preserve-credentials"]
        return [*enter, "--", *map(str, words)]

    def _run(self, host, *words):
        subprocess.run(self.command(host, words), check=True, capture_output=True, text=True, timeout=20)

    def _try(self, host, *words):
        try:
            self._run(host, *words)
        except subprocess.CalledProcessError:
            return False
        return True

    def await_listener(self, host, port, process):
        """Until somebody listens on the TCP port there, or `process` has ended."""
        while process.poll() is None:
            table = subprocess.run(self.command(host, ["cat", "/proc/net/tcp", "/proc/net/tcp6"]), capture_output=True,
                                   text=True, timeout=20, check=False).stdout
            if any(fields[1].endswith(f":{port:04X}") and fields[3] == "0A"
                   for fields in map(str.split, table.splitlines())
                   if len(fields) > 3):
                return
            time.sleep(0.02)

    def await_connection(self, host, port, process):
        """Until a connection with that port at either end is there, or `process` has ended."""
        while process.poll() is None:
            table = subprocess.run(self.command(host, ["cat", "/proc/net/tcp", "/proc/net/tcp6"]), capture_output=True,
                                   text=True, timeout=20, check=False).stdout
            if any(fields[3] == "01" and f":{port:04X}" in fields[1] + fields[2]
                   for fields in map(str.split, table.splitlines())
                   if len(fields) > 3):
                return
            time.sleep(0.02)

    def close(self):
        for holder in self.holders:
            holder.kill()
            holder.wait()
            holder.stdout.close()
            holder.stderr.close()
        self.holders = []


def environment(library, softnic):
    # A library built with a sanitizer needs that one's runtime before it.
    linked = subprocess.run(["ldd", str(library)], capture_output=True, text=True, check=False).stdout
    runtimes = [line.split()[2] for line in linked.splitlines()
                if line.strip().startswith(("libasan.", "libtsan.", "libclang_rt."))]
    env = dict(os.environ, LD_PRELOAD=":".join([*runtimes, str(library)]), GDRPERF_SOFTNIC="1", SOFTNIC=softnic)
    env["ASAN_OPTIONS"] = ":".join(["detect_leaks=0", "verify_asan_link_order=0"] +
                                   [it for it in [env.get("ASAN_OPTIONS")] if it])
    return env
