"""Writes simindex/simhash/_word_ranges.py: the code points the `regex` package calls `\\w`.

The package itself does not depend on `regex`: what a word is stands in the table, so that it does
not change with a version of `regex` or of Python. Run again only together with a new tokenizer
version (`simindex.simhash.features.TOKENIZER`), because other words make other fingerprints:

    python tools/unicode_tables.py
"""

from __future__ import annotations

import re
import sys
import textwrap
from importlib.metadata import metadata
from pathlib import Path

import regex

TARGET = Path(__file__).parent.parent / "simindex" / "simhash" / "_word_ranges.py"

TEMPLATE = '''"""Code points that are part of a word. Written by tools/unicode_tables.py.

What `\\\\w` matches in the `regex` package {version}, whose tables are those of Unicode {unicode}:
{count} code points in {ranges} ranges, each as first-last in hexadecimal, both inclusive.
"""

from __future__ import annotations

UNICODE_VERSION = "{unicode}"

WORD_RANGES = (
{lines}
)
'''


def word_ranges() -> list[tuple[int, int]]:
    """Maximal ranges of code points that `regex` matches by `\\w`, ascending."""
    ranges: list[tuple[int, int]] = []
    is_word = regex.compile(r"\w").match
    for code in range(sys.maxunicode + 1):
        if not is_word(chr(code)):
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1] = (ranges[-1][0], code)
        else:
            ranges.append((code, code))
    return ranges


def unicode_version() -> str:
    """The Unicode version the installed `regex` names in its description."""
    described = metadata("regex").json.get("description", "")
    found = re.search(r"supports Unicode (\d+\.\d+\.\d+)", str(described))
    return found[1] if found else "unknown"


def main() -> None:
    """Write the table."""
    ranges = word_ranges()
    written = " ".join(f"{first:x}-{last:x}" for first, last in ranges)
    wrapped = textwrap.wrap(written, 90, break_on_hyphens=False)
    lines = "\n".join(f'    "{line} "' for line in wrapped)
    TARGET.write_text(
        TEMPLATE.format(
            version=metadata("regex")["Version"],
            unicode=unicode_version(),
            count=f"{sum(last - first + 1 for first, last in ranges):,}",
            ranges=len(ranges),
            lines=lines,
        ),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
