#!/usr/bin/env python3
"""What clang-format (.clang-format) would write otherwise: spaces within lines, and indentation of statements.

Usage: format_check.py FILE...

Where lines end, how continued lines and tables stand, and where comments begin are the writer's choice, which
releases of clang-format answer each in its own way; the rest they agree on. Prints FILE:LINE for each difference.
Exit status: 0 none; 1 some; 3 clang-format did not run.
"""

import subprocess
import sys


def spaced(text):
    """(character, blanks before it, line) of all that is no blank."""
    found = []
    blanks, line = "", 1
    for character in text.replace("\\\n", " \n"):
        line += character == "\n"
        if character in " \t\n":
            blanks += character
        else:
            found.append((character, blanks, line))
            blanks = ""
    return found


def differences(text, wanted):
    """(index, wanted blanks) of the characters before which something else should stand."""
    ours, theirs = spaced(text), spaced(wanted)
    if [it[0] for it in ours] != [it[0] for it in theirs]:
        return None
    wrong = []
    for at, ((_, have, _), (_, want, _)) in enumerate(zip(ours, theirs)):
        if have == want or "".join(it[0] for it in ours[at:at + 2]) in ("//", "/*"):
            continue
        if "\n" not in have and "\n" not in want:
            wrong.append((at, want))
        # A statement after a statement: its depth is no matter of taste.
        elif "\n" in have and "\n" in want and at > 0 and ours[at - 1][0] == ";" == theirs[at - 1][0]:
            if have.rsplit("\n", 1)[1] != want.rsplit("\n", 1)[1]:
                wrong.append((at, "\n" + want.rsplit("\n", 1)[1]))
    return wrong


def main():
    count = 0
    for file in sys.argv[1:]:
        with open(file, encoding="utf-8") as source:
            text = source.read()
        done = subprocess.run(["clang-format", "--style=file", file], capture_output=True, text=True, check=False)
        wrong = differences(text, done.stdout) if done.returncode == 0 else None
        if wrong is None:
            print(f"{file}: clang-format failed: {done.stderr.strip()}", file=sys.stderr)
            return 3
        lines = spaced(text)
        for at, blanks in wrong:
            print(f"{file}:{lines[at][2]}: error: wants {blanks!r} before {''.join(it[0] for it in lines[at:at + 8])} [clang-format]")
        count += len(wrong)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
