"""Writes a text file as C++ string literals: embed_template.py INPUT OUTPUT.

Compilers promise 65536 bytes for one literal, so there are many.
"""
import sys

PIECE = 12000
with open(sys.argv[1], encoding="utf-8", newline="") as source:
    text = source.read()
END = ')page"'
if END in text:
    sys.exit(f"{sys.argv[1]}: holds {END}, which ends the literal")
# A raw string is taken as it is, but for carriage returns.
if "\r" in text:
    sys.exit(f"{sys.argv[1]}: has carriage returns")
with open(sys.argv[2], "w", encoding="utf-8") as out:
    for at in range(0, len(text), PIECE):
        out.write(f'R"page({text[at:at + PIECE]}{END},\n')
