#!/usr/bin/env python3
"""Where clang-format (.clang-format) wants a blank within a line, or none.

Usage: format_check.py FILE...

Where lines end, how continued lines and tables stand and where comments begin is the writer's choice, about which
the releases of clang-format differ as well; about this they agree. Prints FILE:LINE for each difference.
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
        # More than one blank is a column of a table; a pointer among a macro's arguments it takes for a product.
        if "\n" not in have + want and "" in (have, want) and ours[at][0] not in "*&":
            wrong.append((at, want))
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
            print(f"{file}:{lines[at][2]}: error: wants {blanks!r} before {''.join(it[0] for it in lines[at:at + 8])} "
                  f"[clang-format]")
        count += len(wrong)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
