#!/usr/bin/env python3
"""What goes wrong on a real stack: each case ends in a message that names the cause and the
end it happened on, and the server goes on serving."""

import json
import sys
import unittest

import guest

ADDRESS = guest.RXE_ADDRESS
# The limit is 5 seconds; emulation on a busy machine gets twice that.
SECONDS_TO_NOTICE = 10

CLIENT = f'"$gdrperf" write_bw {ADDRESS}'
NEXT_CLIENT = f"{CLIENT} -s 4K -n 100 --json -"
# root may lock memory without limit unless this capability is gone.
LITTLE_MEMORY = 'ulimit -l 64; exec setpriv --bounding-set -ipc_lock'
# Prints how long the client took from the moment its server died.
TIMED_WAIT = ('begin=$(date +%s%3N); wait $client; status=$?; '
              'echo "waited_ms $(($(date +%s%3N) - begin))"; exit $status')


def wait_until(condition):
    return f"n=0; until {condition} || [ $n -gt 300 ]; do sleep 0.1; n=$((n + 1)); done"


def own_server(port, prefix=""):
    """A server of the case's own, listening once this has run; its process is $server."""
    return (f"{prefix} \"$gdrperf\" serve -p {port} 2>serve.{port} & server=$!; "
            + wait_until(f"grep -q serving serve.{port}"))


# Data is flowing: the device's own count of packets moves.
UNDER_WAY = ('sent=/sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts; from=$(cat $sent); '
             + wait_until("[ $(cat $sent) -gt $((from + 500)) ]"))

CASES = {
    "unknown_device": f"{CLIENT} -d nosuch0 -s 4K -n 10",
    "unknown_peer_device": f"{CLIENT} --peer-dev nosuch0 -s 4K -n 10",
    "no_such_gid": f"{CLIENT} -x 77 -s 4K -n 10",
    "client_memlock": f"{LITTLE_MEMORY} {CLIENT} -s 1M -n 10",
    "after_refusals": NEXT_CLIENT,
    "server_memlock": f'({LITTLE_MEMORY} "$gdrperf" serve -p 18601) 2>serve.18601 & server=$!; '
                      + wait_until("grep -q serving serve.18601")
                      + f"; {CLIENT} -p 18601 -s 1M -n 10; status=$?; kill $server; exit $status",
    "server_killed": own_server(18602) + f"; {CLIENT} -p 18602 -s 64K -D 1m & client=$!; "
                     + f"{UNDER_WAY}; kill -9 $server; {TIMED_WAIT}",
    "client_killed": own_server(18603) + f"; {CLIENT} -p 18603 -s 64K -D 1m & client=$!; "
                     + f"{UNDER_WAY}; kill -9 $client; {CLIENT} -p 18603 -s 4K -n 100 --json -; "
                     "status=$?; kill -TERM $server; wait $server; cat serve.18603 >&2; exit $status",
    "garbage": f'head -c 100000 /dev/urandom | timeout 10 bash -c "cat >/dev/tcp/{ADDRESS}/18515"; '
               + NEXT_CLIENT,
    # The last one: the device is of no use afterwards.
    "port_down": 'PATH=$PATH:/usr/sbin:/sbin; ip link set v1 down; '
                 + wait_until("grep -q DOWN /sys/class/infiniband/rxe0/ports/1/state")
                 + '; "$gdrperf" write_bw --local -d rxe0 -s 4K -n 10',
}


class Failures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.results = guest.run_cases(CASES, guest.SERVER)

    def ended(self, name, status, *words):
        result = self.results[name]
        self.assertEqual(result.status, status, f"{name}: {result}")
        for word in words:
            self.assertIn(word, result.stderr)
        return result

    def served(self, name):
        document = json.loads(self.ended(name, 0).stdout)
        self.assertEqual(len(document["relations"]["HOST"]["write_bw"]), 1)

    def test_unknown_device_names_those_there_are(self):
        self.ended("unknown_device", 2, "nosuch0", "rxe0")

    def test_unknown_device_of_the_server(self):
        self.ended("unknown_peer_device", 2, "server", "nosuch0", "rxe0")

    def test_gid_index_out_of_range(self):
        self.ended("no_such_gid", 2, "77", "RoCE v2")

    def test_locked_memory_of_the_client(self):
        result = self.ended("client_memlock", 3, "ibv_reg_mr", "64 KiB", "ulimit -l")
        self.assertNotIn("server", result.stderr)

    def test_locked_memory_of_the_server(self):
        self.ended("server_memlock", 3, "server", "ibv_reg_mr", "64 KiB", "ulimit -l")

    def test_port_down(self):
        self.ended("port_down", 3, "rxe0", "DOWN", "ip link set v0 up")

    def test_server_killed_in_the_middle(self):
        result = self.ended("server_killed", 5, "server")
        waited_ms = int(result.stdout.split("waited_ms")[1])
        self.assertLess(waited_ms, SECONDS_TO_NOTICE * 1000, result)

    def test_client_killed_in_the_middle_frees_the_server(self):
        self.served("client_killed")

    def test_garbage_on_the_servers_port(self):
        self.served("garbage")

    def test_server_goes_on_after_refusals(self):
        self.served("after_refusals")

    def test_server_ends_cleanly_on_sigterm(self):
        self.ended("server", 0)


if __name__ == "__main__":
    sys.exit(unittest.main(argv=guest.UNITTEST_ARGV, verbosity=2))
