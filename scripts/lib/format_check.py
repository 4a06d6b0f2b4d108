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


def check(files):
    """Prints the differences and returns their number; None where clang-format failed, or changed more than blanks.

    One clang-format reads all files, as its start takes longer than a file: the characters that are no blanks come out
    in the order in which they went in.
    """
    if not files:
        return 0
    texts = []
    for file in files:
        with open(file, encoding="utf-8") as source:
            texts.append(source.read() + "\n")
    done = subprocess.run(["clang-format", "--style=file", *files], capture_output=True, text=True, check=False)
    wrong = differences("".join(texts), done.stdout) if done.returncode == 0 else None
    if wrong is None and len(files) > 1:
        counts = [check([file]) for file in files]
        return None if None in counts else sum(counts)
    if wrong is None:
        reason = done.stderr.strip() or "it changes more than blanks"
        print(f"{files[0]}: clang-format failed: {reason}", file=sys.stderr)
        return None
    before = 0
    for file, text in zip(files, texts):
        lines = spaced(text)
        for at, blanks in wrong:
            if before <= at < before + len(lines):
                print(f"{file}:{lines[at - before][2]}: error: wants {blanks!r} before "
                      f"{''.join(it[0] for it in lines[at - before:at - before + 8])} [clang-format]")
        before += len(lines)
    return len(wrong)


def main():
    count = check(sys.argv[1:])
    return 3 if count is None else 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
