"""Leading bits of fingerprints, which say what a shard may hold: `"011"`, or `""` for anything.

    ""                     one shard
    "0"        "1"         two
    "00" "01"  "1"         three: the fullest was split by its next bit

A fingerprint within h of a row of a shard differs from the shard's prefix in at most h bits. So a
query skips shards whose prefix is further away, and a pair skips two shards whose prefixes are.
"""

from __future__ import annotations

import re

import numpy as np

from simindex.arrays import U64, Bools
from simindex.errors import InvalidOption

LONGEST = 64
"""Bits of a prefix: they are those of the first word."""

PREFIX = re.compile(rf"[01]{{0,{LONGEST}}}", re.ASCII)


def begins(rows: U64, prefix: str) -> Bools:
    """Which of some fingerprints, uint64 (n, W), begin with a prefix."""
    return within(rows, prefix, 0)


def within(rows: U64, prefix: str, h: int) -> Bools:
    """Which of some fingerprints, uint64 (n, W), differ from a prefix in at most h of its bits."""
    if not prefix:
        return np.ones(len(rows), np.bool_)
    unlike = (rows[:, 0] >> np.uint64(64 - len(prefix))) ^ np.uint64(int(prefix, 2))
    near: Bools = np.bitwise_count(unlike) <= h
    return near


def apart(one: str, other: str) -> int:
    """In how many bits rows of two prefixes differ at least."""
    return sum(a != b for a, b in zip(one, other, strict=False))


def balanced(count: int, first_words: U64) -> tuple[str, ...]:
    """So many prefixes that no two share a row, and all rows have one; in ascending order.

    The prefix with the most of some first words, uint64 (n,), is split, over and over. Without
    words, or where several have as many, the shortest of them is, and of those the first. Raises
    InvalidOption if there are not as many prefixes.
    """
    held = [("", np.sort(first_words))]
    while len(held) < count:
        place = min(
            (place for place, (prefix, _) in enumerate(held) if len(prefix) < LONGEST),
            key=lambda place: (-len(held[place][1]), len(held[place][0]), held[place][0]),
            default=None,
        )
        if place is None:
            raise InvalidOption(
                f"shards={count} is more than leading bits tell apart", option="shards",
                found=count,
            )
        prefix, words = held.pop(place)
        middle = int(np.searchsorted(words, np.uint64(int((prefix + "1").ljust(64, "0"), 2))))
        held += [(prefix + "0", words[:middle]), (prefix + "1", words[middle:])]
    return tuple(sorted(prefix for prefix, _ in held))


def parted(first_words: tuple[int, int], prefix: str) -> tuple[str, str] | None:
    """Two longer prefixes, each of which has one of a smallest and a largest first word.

    None if both words are equal, so that no prefix tells them apart. `prefix` is that of both.
    """
    least, greatest = (f"{word:064b}" for word in first_words)
    for bit in range(len(prefix), 64):
        if least[bit] != greatest[bit]:
            return least[: bit + 1], greatest[: bit + 1]
    return None
