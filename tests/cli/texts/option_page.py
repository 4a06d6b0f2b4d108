"""docs/reference/options.md: every option of every command, made from the manual pages, made from the option table."""

import re
import textwrap

from support import run

TESTS = [f"{verb}_{metric}" for verb in ("write", "send", "read", "write_imm", "send_imm", "atomic")
         for metric in ("bw", "lat")]
COMMON = 20  # options that a command shares with the tests, from which on it is one of their kind

HEAD = """# Options

Every option of every command, made from the program's own tables (`UPDATE_GOLDEN=1` and the test
`docs` write this page). Several names in a row are the same option; perftest's spellings are among
them. `gdrperf COMMAND --help` and `man gdrperf-COMMAND` print the same. Sizes take K, M and G
(powers of 1024), times ns, us, ms, s, m and h. The order of options does not matter.
"""


def plain(roff):
    return roff.replace("\\e", "\\").replace("\\-", "-").replace("\\&", "")


def options_of(command):
    """(names, value, meaning) of a command's options, its subcommands' included."""
    text = run("man", command).out
    rows = []
    for names, value, meaning in re.findall(r"(?m)^\.TP\n\\fB(.*?)\\fR(?: \\fI(.*?)\\fR)?\n(.*)$", text):
        names, value, meaning = plain(names), plain(value), plain(meaning)
        meaning = meaning[:1].lower() + meaning[1:] if re.match(r"[A-Z][^A-Z0-9]", meaning) else meaning
        row = (names, "" if value == "TEXT" else value, meaning)
        if names != "-h,--help" and row not in rows:
            rows.append(row)
    return rows


def cell(text):
    return text.replace("|", "\\|")


def table(rows):
    lines = ["| option | value | meaning |", "| :--- | :--- | :--- |"]
    for names, value, meaning in rows:
        shown = ", ".join(f"`{name}`" for name in names.split(","))
        lines.append(f"| {shown} | {cell(value)} | {cell(meaning)} |")
    return lines


def page():
    listed = re.findall(r"(?m)^  ([a-z_]+) ", run("--help").out.partition("Subcommands:")[2])
    of_tests, only = [], {}
    for test in TESTS:
        for row in options_of(test):
            if row not in of_tests:
                of_tests.append(row)
            only.setdefault(row, []).append(test)
    shown = []
    for row in of_tests:
        names, value, meaning = row
        of_all = len(only[row]) == len(TESTS)
        shown.append(row if of_all else (names, value, f"{meaning} ({', '.join(only[row])})"))
    lines = [HEAD, "## Tests", "", *textwrap.wrap(", ".join(f"`{test}`" for test in TESTS), 100), "", *table(shown)]
    for command in listed:
        if command in TESTS:
            continue
        rows = options_of(command)
        own = [row for row in rows if row not in of_tests]
        like_tests = len(rows) - len(own) >= COMMON
        if not own and not like_tests:
            continue
        lines += ["", f"## {command}", ""]
        if like_tests:
            lines += ["The options of the tests, and:", ""]
        else:
            own = rows
        lines += table(own)
    return "\n".join(lines) + "\n"
