"""Which fingerprints a shard may hold, as a text: leading bits, or a range of the number of ones.

    ""                     one shard                   anything
    "0"        "1"         two                         leading bits
    "00" "01"  "1"         three: the fullest was split by its next bit
    "000,0010" "0011,01,1" "" was split, whose rows    one of several leading bits
                           all began with 001
    "0-31"     "32-63"     two                         so many bits of all but the last are ones

A fingerprint within h of a row of a shard differs from the shard's leading bits, or from one of
several, in at most h bits, and its number of ones is outside the shard's range by at most h. So a
query skips shards whose region is further away, and a pair skips two shards whose regions are.

The last bit does not count as a one: of an odd number of bits half of random fingerprints have less
than half ones, so that two shards are of one size. With all 64 they had 45 and 55%.
"""

from __future__ import annotations

import heapq
import re
from itertools import pairwise
from math import comb
from typing import NamedTuple

import numpy as np

from simindex.arrays import I64, U16, U64, Bools
from simindex.errors import InvalidOption

LONGEST = 64
"""Bits of a prefix: they are those of the first word."""

PREFIX = re.compile(rf"[01]{{0,{LONGEST}}}", re.ASCII)

SEPARATOR = ","
"""Of several prefixes, none of which begins another, in ascending order."""

RANGE = re.compile(r"(0|[1-9][0-9]{0,3})-(0|[1-9][0-9]{0,3})", re.ASCII)


class Ones(NamedTuple):
    """How many bits but the last may be ones, from `least` to `greatest`."""

    least: int
    greatest: int

    def __str__(self) -> str:
        return f"{self.least}-{self.greatest}"


def ones_of(region: str) -> Ones | None:
    """The range that a region is, or None if it is leading bits."""
    match = RANGE.fullmatch(region)
    return None if match is None else Ones(int(match[1]), int(match[2]))


def is_region(text: object) -> bool:
    """Whether it is one."""
    if not isinstance(text, str):
        return False
    ones = ones_of(text)
    if ones is not None:
        return ones.least <= ones.greatest
    prefixes = prefixes_of(text)
    return all(PREFIX.fullmatch(prefix) is not None for prefix in prefixes) and all(
        one < other and not other.startswith(one) for one, other in pairwise(prefixes)
    )


def prefixes_of(region: str) -> list[str]:
    """The leading bits that a region is, which is no range: a row begins with one of them."""
    return region.split(SEPARATOR)


def said(region: str) -> str:
    """What a row of the region does, in a message."""
    if ones_of(region) is not None:
        return f"have {region} ones"
    return f"begin with {' or '.join(prefixes_of(region))}"


def inside(rows: U64, region: str) -> Bools:
    """Which of some fingerprints, uint64 (n, W), are in a region."""
    return within(rows, region, 0)


def within(rows: U64, region: str, h: int) -> Bools:
    """Which of some fingerprints, uint64 (n, W), may have a row of a region within h."""
    if not region:
        return np.ones(len(rows), np.bool_)
    ones = ones_of(region)
    if ones is not None:
        count = counted(rows)
        return (count >= max(0, ones.least - h)) & (count <= ones.greatest + h)
    near = np.zeros(len(rows), np.bool_)
    for prefix in prefixes_of(region):
        unlike = (rows[:, 0] >> np.uint64(64 - len(prefix))) ^ np.uint64(int(prefix, 2))
        near |= np.bitwise_count(unlike) <= h
    return near


def counted(rows: U64) -> U16:
    """The number of ones of each fingerprint, without its last bit, uint16 (n,)."""
    found: U16 = np.bitwise_count(rows[:, -1] >> np.uint64(1)).astype(np.uint16)
    for word in range(rows.shape[1] - 1):
        found += np.bitwise_count(rows[:, word])
    return found


def apart(one: str, other: str) -> int:
    """In how many bits rows of two regions differ at least."""
    some, others = ones_of(one), ones_of(other)
    if some is not None and others is not None:
        return max(0, some.least - others.greatest, others.least - some.greatest)
    if some is not None or others is not None:
        return 0
    return min(
        sum(a != b for a, b in zip(some_bits, other_bits, strict=False))
        for some_bits in prefixes_of(one) for other_bits in prefixes_of(other)
    )


def asked_share(region: str, bits: int, h: int) -> float:
    """The share of random fingerprints of so many bits that `within` holds for; of one prefix."""
    ones = ones_of(region)
    if ones is not None:
        least, greatest = max(0, ones.least - h), min(bits - 1, ones.greatest + h)
        return sum(comb(bits - 1, count) for count in range(least, greatest + 1)) / (1 << bits - 1)
    length = len(region)
    return sum(comb(length, some) for some in range(min(h, length) + 1)) / (1 << length)


def places_in(rows: U64, regions: tuple[str, ...]) -> I64:
    """Which of some regions, as `balanced` or `ranges` gives them, each fingerprint is in."""
    ones = [ones_of(region) for region in regions]
    if all(one is not None for one in ones):
        least = [one.least for one in ones if one is not None]
        return np.searchsorted(np.array(least), counted(rows), side="right") - 1
    # Prefixes ascend, and each begins where the one before it ends.
    begin = [int(region.ljust(64, "0"), 2) for region in regions]
    return np.searchsorted(np.array(begin, np.uint64), rows[:, 0], side="right") - 1


def ranges(count: int, bits: int, rows: U64 | None) -> tuple[str, ...]:
    """So many ranges of the number of ones of so many bits, ascending, that hold about as many of
    some fingerprints each; of random ones without any.

    Raises InvalidOption if there are not as many ranges.
    """
    if count > bits:
        raise InvalidOption(
            f"shards={count} is more than the {bits} numbers of ones of {bits} bits",
            remedy='give fewer, or by="prefix"', option="shards", found=count, expected=bits,
        )
    if rows is None or not len(rows):
        held = np.array([comb(bits - 1, ones) / (1 << bits - 1) for ones in range(bits)])
    else:
        held = np.bincount(counted(rows), minlength=bits).astype(np.float64)
    below = np.cumsum(held)
    least = [0]
    for number in range(1, count):
        # From the number on whose rows before it are nearest to the share that they should be.
        wanted = below[-1] * number / count
        nearest = int(np.argmin(np.abs(below - wanted))) + 1
        # Each range has a number of its own, and leaves one to each of those that follow.
        least.append(min(max(nearest, least[-1] + 1), bits - (count - number)))
    ends = [*(start - 1 for start in least[1:]), bits - 1]
    return tuple(str(Ones(*some)) for some in zip(least, ends, strict=True))


def balanced(count: int, first_words: U64) -> tuple[str, ...]:
    """So many prefixes that no two share a row, and all rows have one; in ascending order.

    The prefix with the most of some first words, uint64 (n,), is split, over and over. Without
    words, or where several have as many, the shortest of them is, and of those the first. Raises
    InvalidOption if there are not as many prefixes.
    """
    words = np.sort(first_words)
    whole: list[str] = []  # of all bits that there are
    left = [(-len(words), 0, "", 0)]  # how many words, negative; bits; the prefix; its first word
    while len(whole) + len(left) < count:
        if not left:
            raise InvalidOption(
                f"shards={count} is more than leading bits tell apart", option="shards",
                found=count,
            )
        held, bits, prefix, first = heapq.heappop(left)
        if bits == LONGEST:
            whole.append(prefix)
            continue
        end = first - held
        above = np.uint64(int((prefix + "1").ljust(64, "0"), 2))
        middle = first + int(np.searchsorted(words[first:end], above))
        heapq.heappush(left, (first - middle, bits + 1, prefix + "0", first))
        heapq.heappush(left, (middle - end, bits + 1, prefix + "1", middle))
    return tuple(sorted([*whole, *(prefix for _, _, prefix, _ in left)]))


def parted(first_words: tuple[int, int], region: str) -> tuple[str, str] | None:
    """Two regions that divide one of prefixes, each with one of a smallest and a largest word.

    The second one begins at the first bit in which these words differ: all of the region below
    that is in the first. None if both words are equal, so that no leading bits tell them apart.
    """
    least, greatest = first_words
    if least == greatest:
        return None
    apart = (least ^ greatest).bit_length() - 1
    below, above = _cut(prefixes_of(region), greatest >> apart << apart)
    return SEPARATOR.join(below), SEPARATOR.join(above)


def _cut(prefixes: list[str], word: int) -> tuple[list[str], list[str]]:
    """Prefixes of all that some take of words below one, and of the rest; both ascend as they do.
    """
    below: list[str] = []
    above: list[str] = []
    for prefix in prefixes:
        if int(prefix.ljust(64, "1"), 2) < word:
            below.append(prefix)
        elif int(prefix.ljust(64, "0"), 2) >= word:
            above.append(prefix)
        else:
            smaller, larger = _cut([prefix + "0", prefix + "1"], word)
            below += smaller
            above += larger
    return below, above


def halved(held: I64, region: str) -> tuple[str, str] | None:
    """Two ranges of which each has about half of the rows of a region, which is a range.

    `held` says how many rows have each number of ones, int64. None if all have the same.
    """
    ones = ones_of(region)
    there = np.flatnonzero(held)
    if ones is None or len(there) < 2:
        return None
    below = np.cumsum(held)[there[0] : there[-1]]
    middle = int(there[0]) + int(np.argmin(np.abs(below - held.sum() / 2)))
    return str(Ones(ones.least, middle)), str(Ones(middle + 1, ones.greatest))
