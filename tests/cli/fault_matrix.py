"""What --verify must never let pass, as faults that the software device puts into messages."""

from support import run

# What a user would call it, and the device's name for it. perftest's --data_validation passes the
# first two.
FAULTS = {
    "writes dropped after the first thousand": "drop:from=1000",
    "every tenth lost": "drop:every=10",
    "a bit flipped": "flip:every=90",
    "landed in its neighbour's slot": "misplace:every=90",
    "stale data of the lap before": "stale:every=90",
    "a tail not written": "truncate:every=90",
}


def missed(ends, tests=("write_bw", "send_bw", "read_bw"), sizes=(4097,)):
    """Runs every fault with `ends` (options); what was injected and not found, and how many were tried."""
    wrong, tried = [], 0
    for name, fault in FAULTS.items():
        for test in tests:
            for size in sizes:
                if fault.startswith("misplace") and test.startswith("send") and size < 2:
                    continue  # the device swaps the halves of a SEND: a byte has none
                if fault.startswith(("misplace", "truncate")) and test.startswith("atomic"):
                    continue  # the device does neither to the word of an atomic
                tried += 1
                result = run(test, "--local", "--softnic", "-d", "soft0", "-s", size, "-n", 2500, "--verify", *ends,
                             env={"SOFTNIC": f"soft0:fault={fault}"})
                if result.code != 5:
                    wrong.append(f"{name} ({fault}), {test} {size} B {' '.join(ends)}: {result}")
    return wrong, tried
