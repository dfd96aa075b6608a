"""How far a block design is exact, with the proofs; and the shapes that are exact for a radius.

The letters are those of `design`: G blocks of which g lead, or a outer and c inner blocks; r flips.

**Flat (G, g, r): exact for h <= r + (G - g) ceil((r + 1) / g), and no further.** Suppose that every
choice of g blocks holds at least r + 1 errors. So do the g blocks with the fewest errors, and the
worst of these holds at least c = ceil((r + 1) / g) by pigeonhole. Each of the other G - g blocks
holds no fewer: at least (r + 1) + (G - g) c errors in all, one more than the bound. So few are
enough to fail: r + 1 errors spread evenly over g blocks, c in each of the others; blocks are wide
enough for c because r is less than the narrowest. With r = 0 that is h <= G - g of [PSM] section 6;
with G = 2, g = 1, r = 1 it is h <= 3: of two halves, one holds at most one of three errors.

**Nested (a, c, r): exact for h < min over x = 0 .. r + 1 of max(a x, x + c (r + 1 - x)).** Suppose
that every header holds at least r + 1 errors, and let x be the errors of the outer block with the
fewest. If x > r, there are at least a (r + 1) errors. Otherwise each of the c inner blocks of
that one holds at least r + 1 - x, so there are at least x + c (r + 1 - x); and at least a x, as
every outer block holds x. With r = 0 it is h < min(a, c). That one error more can fail is not part
of this argument; it was found to be so for every nested design the tests try.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb

TELLING_BITS = 40
"""A longer header tells hardly more rows apart: few indexes hold 2^40 of them."""

Shape = tuple[int, int, int]
"""(G, g, 0) of a flat design, (a, 1, c) of a nested one."""


def exact_for(shape: Shape, flips: int) -> int:
    """The largest h such that all rows within h of a query are found; see the module."""
    count, leading, inner = shape
    if inner:
        return min(max(count * x, x + inner * (flips + 1 - x)) for x in range(flips + 2)) - 1
    return flips + (count - leading) * -(-(flips + 1) // leading)


def table_flips(shape: Shape, h: int) -> tuple[int, ...]:
    """The fewest flips of each table that are exact for h; see `BlockDesign.table_flips`.

    Notes
    -----
    The proofs of the module hold for the first G' of the blocks alone, or for a' outer and c'
    inner ones. For g = 1 blocks may differ: if block i holds more than r_i errors for every i,
    there are at least the sum of r_i + 1, so h + 1 is dealt out evenly.
    """
    count, leading, inner = shape
    if leading == 1 and not inner:
        share, more = divmod(h + 1, count)
        return tuple(share - (i >= more) for i in range(count))
    flips = next(r for r in range(h + 1) if exact_for(shape, r) >= h)
    if inner:
        _, outers, inners = min(
            (a * c, a, c)
            for a in range(1, count + 1) for c in range(1, inner + 1)
            if exact_for((a, 1, c), flips) >= h
        )
        return tuple(
            flips if i < outers and j < inners else -1
            for i in range(count) for j in range(inner)
        )
    first = next(
        n for n in range(leading, count + 1) if exact_for((n, leading, 0), flips) >= h
    )
    return tuple(
        flips if chosen[-1] < first else -1 for chosen in combinations(range(count), leading)
    )


def cheapest_flips(costs: Sequence[Sequence[float]], h: int) -> tuple[int, ...] | None:
    """The flips of each table of a flat design with g = 1 that are exact for h and cost least.

    Parameters
    ----------
    costs : sequence of sequences
        Of each table, with 0, 1, 2, ... flips; a table that is not looked into costs nothing.

    Returns
    -------
    tuple of int, or None
        -1 for a table that is not looked into. None if so many flips are not exact for h.

    Notes
    -----
    If block i holds more than r_i errors for every i, there are at least the sum of r_i + 1. So
    the sum of r_i + 1 must be h + 1: tables are added one by one, for each sum up to that.
    """
    best: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for table in costs:
        longer: dict[int, tuple[float, tuple[int, ...]]] = {}
        for total, (spent, flips) in best.items():
            for dealt, cost in enumerate((0.0, *table)):
                reached, candidate = min(h + 1, total + dealt), (spent + cost, (*flips, dealt - 1))
                if reached not in longer or candidate < longer[reached]:
                    longer[reached] = candidate
        best = longer
    return best[h + 1][1] if h + 1 in best else None


def exact_shapes(
    h: int, bits: int, most_tables: int, most_flips: int
) -> Iterator[tuple[int, int, int, Shape]]:
    """(tables, flips, - bits of the shortest header, shape) of designs exact for h.

    Each with the fewest flips that make it so; some may have blocks too narrow for them.
    """
    shapes = [  # C(16, 8) is above MAX_TABLES already
        (count, leading, 0)
        for count in range(2, min(bits, most_tables) + 1)
        for fewer in range(1, min(count // 2, 7) + 1) if comb(count, fewer) <= most_tables
        for leading in {fewer, count - fewer}
    ]
    shapes += [
        (outer, 1, inner)
        for outer in range(2, min(bits, most_tables // 2) + 1)
        for inner in range(2, most_tables // outer + 1)
    ]
    for shape in shapes:
        count, leading, inner = shape
        narrow, wider = divmod(bits, count)
        if inner:
            tables = count * inner
            header = min(w + (bits - w) // inner for w in (narrow, narrow + (wider > 0)))
        else:
            tables = comb(count, leading)
            header = leading * narrow + max(0, leading - (count - wider))
        for flips in range(min(h, most_flips) + 1):
            if exact_for(shape, flips) >= h:
                yield tables, flips, -min(TELLING_BITS, header), shape
                break
