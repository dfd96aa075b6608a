"""Writes _kernels/src/simhash/unicode_tables.inc: what the tokenizer knows of each code point.

The engine itself depends neither on `regex` nor on the running Python's Unicode: what a word is and
how it is folded stands in the table, so that fingerprints do not change with a version of either.
Run again only together with a new tokenizer version (`simindex.simhash.features.TOKENIZER`),
because other words make other fingerprints:

    python tools/unicode_tables.py

Folding is `str.casefold` of the Python that runs this, words and scripts are those of `regex`.
"""

from __future__ import annotations

import re
import sys
import textwrap
import unicodedata
from importlib.metadata import metadata
from pathlib import Path

import regex

TARGET = Path(__file__).parents[1] / "simindex/_kernels/src/simhash/unicode_tables.inc"
BLOCK = 128

SEPARATOR, WORD, BIGRAM, MARK, SPACE, SEVERAL = 0, 1, 2, 3, 4, 8
"""Two bits of class, and two flags; the C++ header draws them."""

UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}〆〱-〵〼ーｰﾞﾟ]"
"""Letters that are paired: those of the four scripts, and the signs that Han and Kana share."""

TEMPLATE = """\
// Written by tools/unicode_tables.py. Words and scripts: regex {version}, Unicode {words};
// folding: Unicode {folding}. {entries} kinds of code point, {blocks} blocks of {block}.

constexpr char kWordsVersion[] = "{words}";
constexpr char kFoldingVersion[] = "{folding}";

constexpr CodePoint kKinds[] = {{
{kinds}
}};

constexpr std::uint32_t kExpansions[][4] = {{
{expansions}
}};

constexpr std::uint16_t kBlockOf[] = {{
{block_of}
}};

constexpr std::uint16_t kKindOf[][{block}] = {{
{kind_of}
}};
"""


def flags_of_every_code_point() -> list[int]:
    """Class of each code point, and whether it is white space, before folding."""
    word = regex.compile(r"\w").match
    mark = regex.compile(r"\p{M}").match
    paired = regex.compile(UNSPACED).match
    flags = []
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        kind = SEPARATOR
        if word(character):
            kind = BIGRAM if paired(character) else MARK if mark(character) else WORD
        flags.append(kind | (SPACE if character.isspace() else 0))
    return flags


def unicode_version() -> str:
    """The Unicode version the installed `regex` names in its description."""
    described = metadata("regex").json.get("description", "")
    found = re.search(r"supports Unicode (\d+\.\d+\.\d+)", str(described))
    return found[1] if found else "unknown"


OLDEST_FOLDING = (15, 1)
"""Unicode of the Python that this needs at least: an older one would fold fewer letters."""


def main() -> None:
    """Write the table."""
    if tuple(map(int, unicodedata.unidata_version.split(".")))[:2] < OLDEST_FOLDING:
        sys.exit(
            f"this Python knows Unicode {unicodedata.unidata_version}: run with one that knows "
            f"{'.'.join(map(str, OLDEST_FOLDING))} or newer"
        )
    flags = flags_of_every_code_point()
    kinds: dict[tuple[int, int], int] = {}
    expansions: dict[tuple[int, ...], int] = {}
    blocks: dict[tuple[int, ...], int] = {}
    block_of: list[int] = []
    for first in range(0, sys.maxunicode + 1, BLOCK):
        block = []
        for code in range(first, first + BLOCK):
            folded = tuple(map(ord, chr(code).casefold()))
            if len(folded) == 1:
                kind = (folded[0] - code, flags[folded[0]])
            else:
                kind = (expansions.setdefault(folded, len(expansions)), SEVERAL)
            block.append(kinds.setdefault(kind, len(kinds)))
        block_of.append(blocks.setdefault(tuple(block), len(blocks)))

    def rows(values: list[str]) -> str:
        return "\n".join(textwrap.wrap(", ".join(values), 98, break_on_hyphens=False))

    TARGET.write_text(
        TEMPLATE.format(
            version=metadata("regex")["Version"], words=unicode_version(),
            folding=unicodedata.unidata_version, entries=len(kinds), blocks=len(blocks),
            block=BLOCK,
            kinds=rows([f"{{{delta}, {flag}}}" for delta, flag in kinds]),
            expansions=rows(
                ["{" + ", ".join(map(str, (len(codes), *codes))) + "}" for codes in expansions]
            ),
            block_of=rows(list(map(str, block_of))),
            kind_of=",\n".join("{" + rows(list(map(str, block))) + "}" for block in blocks),
        ),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
