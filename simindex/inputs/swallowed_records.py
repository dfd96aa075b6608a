"""Whether the length of a record reaches over records behind it, which would be lost in its body.

    head | block                                           | the next record
         | message | empty line | head | block ... block   |

What follows such a block is as it should be, because the length ends where another record does. So
the block itself is looked at. It has swallowed records if

1. its message ends before it does, by the Content-Length of HTTP, and the head of a record follows;
2. or the heads in it lead from one record to the next, and the last one ends where the block does.

A page may show such heads, but its own end follows them. An archive that a server sent begins with
a head, and the empty line behind its last record is in the block, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from simindex.values import dataclass

HTTP = b"HTTP/"
"""What a message begins with."""

SWALLOWS = "damaged: its length reaches over the records behind it"
"""Why such a record is bad."""

MOST_HEADS = 1 << 16
"""Heads in one block that are looked at."""

_HTTP_LENGTH = re.compile(rb"(?i)\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r?\n")
_HTTP_CODED = re.compile(rb"(?i)\ntransfer-encoding:")


@dataclass(frozen=True, slots=True)
class Heads:
    """How records of an archive begin."""

    start: re.Pattern[bytes]
    """Finds a head, which is its first group, with the line end in front of it."""
    body: Callable[[bytes, int], tuple[int, int] | None]
    """Where the block of the head at a place begins, and where it ends; None if no head is there.
    """


def swallowed(block: bytes, heads: Heads) -> int | None:
    """Where the first record begins that a block holds by mistake; None if it holds none."""
    begin, stop = _message(block) if block.startswith(HTTP) else (0, None)
    if stop == len(block):
        return None
    if stop is not None and stop < len(block):
        at = _behind(block, stop)
        if at > stop and heads.body(block, at) is not None:
            return at
    return _chained(block, heads, begin)


def _message(block: bytes) -> tuple[int, int | None]:
    """Where the body of a message of HTTP begins, and where it ends, if its headers say so."""
    found = re.search(rb"\n\r?\n", block)
    if found is None:
        return 0, None
    begin = found.end()
    length = _HTTP_LENGTH.search(block, 0, begin)
    if length is None or _HTTP_CODED.search(block, 0, begin) is not None:
        return begin, None
    return begin, begin + int(length[1])


def _behind(block: bytes, at: int) -> int:
    """The first place from there on that has no line end."""
    while block[at : at + 1] in (b"\r", b"\n"):
        at += 1
    return at


def _chained(block: bytes, heads: Heads, begin: int) -> int | None:
    """The first head from which records follow each other up to the end of the block."""
    seen: set[int] = set()
    for found in heads.start.finditer(block, begin):
        first = at = found.start(1)
        while at not in seen and len(seen) < MOST_HEADS:
            seen.add(at)
            body = heads.body(block, at)
            if body is None or body[1] > len(block):
                break
            if body[1] == len(block):
                return first
            at = _behind(block, body[1])
            if at == body[1]:
                break
        if len(seen) >= MOST_HEADS:
            break
    return None
