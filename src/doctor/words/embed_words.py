"""Joins files of known messages to C++ string literals: embed_words.py INPUT... OUTPUT.

Compilers promise 65536 bytes for one literal, so there are many.
"""
import sys

PIECE = 12000
END = ')words"'
text = ""
for path in sys.argv[1:-1]:
    with open(path, encoding="utf-8", newline="") as source:
        text += source.read().rstrip("\n") + "\n\n"
if END in text or "\r" in text:
    sys.exit(f"a file of known messages holds {END} or a carriage return")
with open(sys.argv[-1], "w", encoding="utf-8") as out:
    for at in range(0, len(text), PIECE):
        out.write(f'R"words({text[at:at + PIECE]}{END},\n')
