"""Which header bits to flip, most likely sets first: the Volatility Ordered Set Heap of [PSM].

A set S of bits is likely to be what changed when p(u, S) of [PSM] (6) is large; since that is a
product, the ratio (7) of two sets is the ratio of their odds, and the k most likely sets are the k
of smallest **cost**, the sum over S of log((1 - p_j) / p_j). Bits are named by **rank**: rank 0 is
the most volatile (the paper counts from 1).

A `plan` is what the native kernel needs to find them for 16 queries at a time, without the paper's
heap; `tests/vosh_heap.py` has that word for word.

Why a plan exists. Whatever the costs, set A costs no more than set B if A's ranks can be matched
one to one with some of B's, each no larger than its partner: A **dominates** B. A set dominated by
k others is never needed among the first k, and few sets are not: 35 for k = 16, h = 3. So a fixed
list of candidates is summed and a comparator network brings the k cheapest to the front. A network
does the same steps for any data, so the queries can be side by side in a vector register.
"""

from __future__ import annotations

import heapq
from functools import lru_cache
from math import comb

import numpy as np

from simindex.arrays import U8, U16
from simindex.errors import InvalidOption
from simindex.values import dataclass

MAX_NETWORKED_FLIPS = 256
"""Most flips that go through networks: a twelfth of the heap's time at k = 16, a sixth at k = 256
(22 header bits, h = 3)."""

MAX_NETWORKED_HEADER_BITS = 32
"""Widest header the networked kernel sorts."""

MAX_CANDIDATES = 2048
"""Most candidates the networked kernel holds."""

PADDING = 255
"""Fills a candidate's row behind its last rank."""

Pair = tuple[int, int]


def set_count(header_bits: int, h: int) -> int:
    """How many non-empty sets of at most h of the header's bits there are: the largest k."""
    return sum(comb(header_bits, size) for size in range(1, min(h, header_bits) + 1))


@dataclass(frozen=True, slots=True, eq=False)
class VoshPlan:
    """What the native kernels need to know about (t, h, k) in addition to the weights.

    Empty arrays stand for "use the heap".
    """

    header_bits: int
    h: int
    flips: int
    """k, at most the number of sets there are."""
    candidates: U8
    """(C, h) ranks, padded with 255; candidate c enters the selection on wire c."""
    sort_network: U8
    """(R, 2) comparators over t wires; the lowest min(k, t) come out in order on wires 0, 1, ..."""
    select_network: U16
    """(S, 2) comparators over C wires; the k lowest come out in order on wires 0, 1, ..."""


@lru_cache(maxsize=256)
def plan(header_bits: int, h: int, flips: int) -> VoshPlan:
    """The plan for k = `flips` of at most h of `header_bits` header bits, clamped to what exists.

    Raises
    ------
    InvalidOption
        If a number is negative or the header is wider than one word.

    Notes
    -----
    Cached: a few milliseconds the first time (about 0.1 s at k = 256), a dictionary look-up later.
    """
    if not (0 <= header_bits <= 64 and h >= 0 and flips >= 0):
        raise InvalidOption(
            f"no flips for header_bits={header_bits}, h={h}, flips={flips}",
            remedy="give 0 to 64 header bits and numbers that are not negative",
            header_bits=header_bits, h=h, flips=flips,
        )
    k = min(flips, set_count(header_bits, h))
    networked = 0 < k <= MAX_NETWORKED_FLIPS and header_bits <= MAX_NETWORKED_HEADER_BITS
    sets = _undominated(header_bits, h, k) if networked else []
    if not sets or len(sets) > MAX_CANDIDATES:
        return VoshPlan(
            header_bits, h, k, np.empty((0, h), np.uint8), np.empty((0, 2), np.uint8),
            np.empty((0, 2), np.uint16),
        )
    order, select = _select(_chains(sets), k)
    candidates = np.full((len(sets), h), PADDING, np.uint8)
    for wire, ranks in enumerate(order):
        candidates[wire, : len(ranks)] = ranks
    # Any header bit may enter on any wire, so which one does is of no interest.
    _, sort = _select([[(bit,)] for bit in range(header_bits)], min(k, header_bits))
    found = VoshPlan(
        header_bits, h, k, candidates, np.array(sort, np.uint8).reshape(-1, 2),
        np.array(select, np.uint16).reshape(-1, 2),
    )
    for shared in (found.candidates, found.sort_network, found.select_network):
        shared.flags.writeable = False
    return found


def _dominates(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether a costs no more than b whatever the costs: compare largest ranks first."""
    return len(a) <= len(b) and all(
        x <= y for x, y in zip(reversed(a), reversed(b), strict=False)
    )


def _undominated(header_bits: int, h: int, k: int) -> list[tuple[int, ...]]:
    """Sets dominated by fewer than k others, in an order in which no set precedes its dominators.

    Whatever dominates such a set is one itself, so they grow from (0,) by single steps: one rank up
    by 1, or rank 0 added.
    """
    found: list[tuple[int, ...]] = []
    padded = np.empty((0, h), np.int8)  # largest rank first, -1 behind the last
    level: set[tuple[int, ...]] = {(0,)}
    while level:
        # All sets of a level have the same number of steps, so none dominates another.
        ordered = sorted(level)
        rows = np.array([ranks[::-1] + (-1,) * (h - len(ranks)) for ranks in ordered], np.int8)
        dominators = [int((padded <= row).all(axis=1).sum()) for row in rows]
        kept = [ranks for ranks, count in zip(ordered, dominators, strict=True) if count < k]
        padded = np.concatenate([padded, rows[[count < k for count in dominators]]])
        found += kept
        level = {grown for ranks in kept for grown in _steps(ranks, header_bits, h)}
    return found


def _steps(ranks: tuple[int, ...], header_bits: int, h: int) -> list[tuple[int, ...]]:
    """The sets one step above: some rank raised by 1, or rank 0 added."""
    above = []
    for j, rank in enumerate(ranks):
        limit = ranks[j + 1] if j + 1 < len(ranks) else header_bits
        if rank + 1 < limit:
            above.append((*ranks[:j], rank + 1, *ranks[j + 1 :]))
    if ranks[0] > 0 and len(ranks) < h:
        above.append((0, *ranks))
    return above


def _chains(sets: list[tuple[int, ...]]) -> list[list[tuple[int, ...]]]:
    """The sets as few chains, each of which is in rising cost whatever the costs."""
    chains: list[list[tuple[int, ...]]] = []
    for ranks in sets:
        for chain in chains:
            if _dominates(chain[-1], ranks):
                chain.append(ranks)
                break
        else:
            chains.append([ranks])
    return chains


def _select(
    chains: list[list[tuple[int, ...]]], k: int
) -> tuple[list[tuple[int, ...]], list[Pair]]:
    """A network that brings the k lowest of sorted chains, in order, to wires 0 .. k-1.

    Chains are merged, the two shortest first, by Batcher's odd-even merge (Knuth, TAOCP 3, 5.3.4),
    cut to k outputs; comparators no output depends on are dropped. Returns which set enters on
    which wire, and the comparators (low wire, high wire).
    """
    names = [ranks for chain in chains for ranks in chain]
    wire_of = {ranks: wire for wire, ranks in enumerate(names)}
    comparators: list[Pair] = []
    queue = [(len(chain), place, [wire_of[ranks] for ranks in chain][:k])
             for place, chain in enumerate(chains)]
    heapq.heapify(queue)
    places = len(queue)
    while len(queue) > 1:
        _, _, a = heapq.heappop(queue)
        _, _, b = heapq.heappop(queue)
        merged = _merge(a, b, comparators)[:k]
        heapq.heappush(queue, (len(merged), places, merged))
        places += 1
    outputs = queue[0][2]

    needed = set(outputs)
    kept: list[Pair] = []
    for low, high in reversed(comparators):
        if low in needed or high in needed:
            needed |= {low, high}
            kept.append((low, high))
    kept.reverse()

    # Rename the wires so that output j is on wire j.
    renamed = {wire: place for place, wire in enumerate(outputs)}
    for wire in range(len(names)):
        renamed.setdefault(wire, len(renamed))
    order = [names[0]] * len(names)
    for wire, name in enumerate(names):
        order[renamed[wire]] = name
    return order, [(renamed[low], renamed[high]) for low, high in kept]


def _merge(a: list[int], b: list[int], comparators: list[Pair]) -> list[int]:
    """Wires of two sorted lists, in sorted order once `comparators` have run; appends to them."""
    if not a or not b:
        return a or b
    if len(a) == 1 and len(b) == 1:
        comparators.append((a[0], b[0]))
        return [a[0], b[0]]
    even = _merge(a[0::2], b[0::2], comparators)
    odd = _merge(a[1::2], b[1::2], comparators)
    merged = [even[0]]
    for j, wire in enumerate(odd):
        if j + 1 < len(even):
            comparators.append((wire, even[j + 1]))
            merged += [wire, even[j + 1]]
        else:
            merged.append(wire)
    return merged + even[len(odd) + 1 :]
