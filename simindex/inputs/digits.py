"""Fingerprints as lines: hexadecimal digits, and behind a tab perhaps a key.

This is what `simindex fingerprint` prints. A key's tabs, line ends and backslashes are written
``\\t``, ``\\n``, ``\\r`` and ``\\\\``, other control characters, and those that turn the direction
of a line, ``\\uNNNN``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from simindex.inputs.document import Source, key_of
from simindex.inputs.fingerprints import Fingerprints, gathered, record_lines
from simindex.inputs.streams import decoded, unmarked

_LINE = re.compile(rb"(?:[0-9a-fA-F]{16})+(?:\t.*)?\r?\n?")

_ESCAPED = re.compile(r"\\(u(?:00|06|20)[0-9a-f]{2}|.)", re.DOTALL)
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}


def read_digits(stream: BinaryIO, source: Source) -> Iterator[Fingerprints]:
    """Rows of a file of lines, in its order; empty lines are skipped.

    Bad records: a line over the limit, bytes that are not UTF-8, anything but digits of the width
    of the first line, a line with a key after lines without, or the other way round.
    """
    return gathered(source, record_lines(stream, source), _parsed)


def _parsed(line: bytes) -> tuple[str, str | None, None, None]:
    digits, tab, key = decoded(line.rstrip(b"\r\n")).partition("\t")
    named = key_of(unescaped(key), "key", "field", may_be_empty=True) if tab else None
    return digits, named, None, None


def is_digits(head: bytes, text_field: str) -> bool:
    """Whether the first line is one of digits."""
    line, end, _ = unmarked(head).partition(b"\n")
    return bool(end) and _LINE.fullmatch(line + end) is not None


def unescaped(key: str) -> str:
    """A key as it was before it was written into a column."""
    if "\\" not in key:
        return key
    return _ESCAPED.sub(_character, key)


def _character(escape: re.Match[str]) -> str:
    name = escape[1]
    return chr(int(name[1:], 16)) if len(name) > 1 else _ESCAPES.get(name, escape[0])
