"""Block designs: which bits each table of a block-permuted Hamming search (BPHS) sorts by.

b bits are cut into blocks; each table moves some of them to the front, its **header**. Two rows
that differ in few bits agree on the header of some table, so each table is sorted by its permuted
rows and only rows with the query's header are compared.

    flat, G = 5 blocks, g = 2 lead      nested, a = 4 outer blocks, c = 4 inner blocks of the rest
    columns    0   13  26  39  52       columns    0        16       32       48       64
               | A | B | C | D | E |               |   A    |   B    |   C    |   D    |
    table 0      A B  C D E             the rest of A (48 bits) is cut again, across B, C, D:
    table 1      A C  B D E                                 |  W  |  X  |  Y  |  Z  |
    ...                                 table 0    A W  X Y Z        table 1    A X  W Y Z
    table 9      D E  A B C             table 4    B W' X' Y' Z'     (the rest of B: A, C, D)

Columns count from bit 63 of word 0. As many blocks as b leaves over are one bit wider, the first
ones. A header's blocks keep their order, and so does what follows the header.

A design may **flip** r bits: then every header within r bits of the query's is looked up.

1. Table 0 is the identity, so it is the sorted rows themselves.
2. Each table is a permutation of columns: Hamming distances stay as they are.
3. Two rows within `exact_for` bits differ in at most r header bits in at least one table.

Frozen on disk: the cut into blocks, the order of the tables and the order within each. How far a
design is exact is proved in `exactness`; `permutation` makes the moves of a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import combinations
from math import comb
from typing import Any

from simindex.arrays import I64, U64
from simindex.bits import exactness, permutation
from simindex.bits.permutation import Interval
from simindex.checks import is_int, require
from simindex.errors import InvalidOption
from simindex.options import MAX_BITS
from simindex.values import dataclass

MAX_TABLES = 1 << 12
"""Most tables of a design: 32 KiB for each row of 64 bits."""

_STRUCTURE = re.compile(
    r"bphs:(?:G=([0-9]{1,4}),g=([0-9]{1,4})|nested=([0-9]{1,4})x([0-9]{1,4}))(?:,r=([0-9]{1,4}))?"
)
_FORMS = '"bphs:G=5,g=2", "bphs:G=2,g=1,r=1" or "bphs:nested=4x4"'


@dataclass(frozen=True)
class BlockDesign:
    """How b bits are cut into blocks, which of them lead in which table, and how many bits flip.

    Made by `flat`, `nested` or `parse`. Equal designs permute alike.

    Parameters
    ----------
    block_count : int
        G, or a of a nested design.
    leading : int
        g: how many blocks each header holds; 1 in a nested design.
    inner : int
        c: into how many blocks the rest is cut, one of which follows; 0 in a flat design.
    flips : int
        r: headers within r bits of the query's header are looked up.
    bits : int
        b: a multiple of 64 up to 4096.

    Raises
    ------
    InvalidOption
        If a number is out of range, blocks would be empty or no wider than r, or there would be
        more than 4096 tables; `data["option"]` names it, in the letters of the structure string.
    """

    block_count: int
    leading: int
    inner: int = 0
    flips: int = 0
    bits: int = 64

    def __post_init__(self) -> None:
        count, leading, inner, bits = self.block_count, self.leading, self.inner, self.bits
        many = "a" if inner != 0 else "G"
        require(is_int(bits) and 64 <= bits <= MAX_BITS and bits % 64 == 0,
                "bits", bits, f"a multiple of 64 from 64 to {MAX_BITS}")
        require(is_int(count) and 2 <= count <= bits, many, count, f"from 2 to b = {bits} blocks")
        require(is_int(leading) and 1 <= leading < count, "g", leading,
                f"from 1 to G - 1 = {count - 1}: the rows themselves are sorted by all blocks")
        require(is_int(inner) and (inner == 0 or 2 <= inner <= bits - self.blocks[0]),
                "c", inner, f"from 2 to {bits - self.blocks[0]} inner blocks")
        require(inner == 0 or leading == 1, "g", leading, "1 in a nested design")
        narrowest = min(self.blocks[-1], (bits - self.blocks[0]) // inner if inner else bits)
        require(is_int(self.flips) and 0 <= self.flips < narrowest, "r", self.flips,
                f"from 0 to {narrowest - 1}, less than the bits of the narrowest block")
        require(self.tables <= MAX_TABLES, "tables", self.tables,
                f"at most {MAX_TABLES}: take fewer blocks")

    @classmethod
    def flat(cls, blocks: int, leading: int, *, flips: int = 0, bits: int = 64) -> BlockDesign:
        """G = `blocks`, of which each choice of g = `leading` makes a table [PSM section 6]."""
        return cls(blocks, leading, 0, flips, bits)

    @classmethod
    def nested(cls, outer: int, inner: int, *, flips: int = 0, bits: int = 64) -> BlockDesign:
        """One of a = `outer` blocks, then one of c = `inner` that the rest is cut into [MJS]."""
        require(inner != 0, "c", inner, "2 or more inner blocks")
        return cls(outer, 1, inner, flips, bits)

    @classmethod
    def parse(cls, structure: str, bits: int = 64) -> BlockDesign:
        """The design of a structure string; the inverse of `structure`.

        Raises InvalidOption if it is not such a string, or its numbers make no design.
        """
        found = _STRUCTURE.fullmatch(structure) if isinstance(structure, str) else None
        if found is None:
            raise InvalidOption(
                f"{structure!r} is not the name of a block design",
                remedy=f"write it like {_FORMS}; both forms may end in ,r=N", option="structures",
                found=structure, expected=_FORMS,
            )
        count, leading, outer, inner, flips = (int(part or 0) for part in found.groups())
        try:
            if found[3] is not None:
                return cls.nested(outer, inner, flips=flips, bits=bits)
            return cls.flat(count, leading, flips=flips, bits=bits)
        except InvalidOption as error:
            raise InvalidOption(
                f"{structure}: {error.what}", remedy=error.remedy, structure=structure, **error.data
            ) from None

    @property
    def structure(self) -> str:
        """The name under which an index stores it: "bphs:G=5,g=2", "bphs:nested=4x4,r=1"."""
        blocks = (
            f"nested={self.block_count}x{self.inner}" if self.inner
            else f"G={self.block_count},g={self.leading}"
        )
        return f"bphs:{blocks}" + (f",r={self.flips}" if self.flips else "")

    def __str__(self) -> str:
        return self.structure

    @property
    def blocks(self) -> tuple[int, ...]:
        """Widths of the G (or outer a) blocks, in bits; they differ by at most 1, wider first."""
        return permutation.widths(self.bits, self.block_count)

    @property
    def tables(self) -> int:
        """T: C(G, g), or a c; table 0, the sorted rows themselves, is one of them."""
        return self.block_count * self.inner or comb(self.block_count, self.leading)

    @cached_property
    def headers(self) -> tuple[tuple[Interval, ...], ...]:
        """Of each table, the columns of its header as intervals (first column, width), in order."""
        return tuple(self._headers())

    @cached_property
    def header_bits(self) -> tuple[int, ...]:
        """Of each table, the width of its header in bits: g gamma of [PSM] (8)."""
        return tuple(sum(width for _, width in header) for header in self.headers)

    @property
    def exact_for(self) -> int:
        """The largest h such that all rows within h of a query are found."""
        return exactness.exact_for(self._shape, self.flips)

    @property
    def bytes_per_row(self) -> int:
        """T b / 8 [PSM (10)], of which b / 8 are the rows, without header directories."""
        return self.tables * self.bits // 8

    def require_exact(self, h: int) -> None:
        """Refuse a radius the design cannot promise.

        Raises
        ------
        InvalidOption
            If h is negative or above `exact_for`; names designs that would do, as does
            `data["designs"]`.
        """
        require(is_int(h) and h >= 0, "h", h, "a whole number from 0")
        if h > self.exact_for:
            names = [design.structure for design in designs_for(h, self.bits, MAX_TABLES)[:4]]
            remedy = f"use {' or '.join(names)}" if names else 'use method="scan", as no design is'
            raise InvalidOption(
                f"{self.structure} is exact up to h={self.exact_for}, not h={h}",
                remedy=remedy, option="h", found=h, expected=self.exact_for,
                structure=self.structure,
                designs=tuple(names),
            )

    def table_flips(self, h: int) -> tuple[int, ...]:
        """How many header bits to flip in each table to be exact for h; -1 where none is needed.

        At h = `exact_for` of a flat design that is r in every table. A smaller h asks less: fewer
        flips, or some tables not at all, as of a nested design with a != c. Flips are avoided
        first, then tables; the first ones stay.

        Raises
        ------
        InvalidOption
            As `require_exact`.
        """
        self.require_exact(h)
        return exactness.table_flips(self._shape, h)

    def cheapest_flips(
        self, h: int, costs: Sequence[Sequence[float]]
    ) -> tuple[int, ...] | None:
        """`table_flips` of the least cost instead of the fewest flips.

        Parameters
        ----------
        costs : sequence of sequences
            Of each table, with 0, 1, 2, ... flips, as far as they may be taken.

        Returns
        -------
        tuple of int, or None
            None if these flips are not exact for h, or the design is not flat with g = 1: its
            tables share blocks.

        Raises
        ------
        InvalidOption
            As `require_exact`.
        """
        self.require_exact(h)
        if self.inner or self.leading > 1:
            return None
        return exactness.cheapest_flips(costs, h)

    def moves(self, table: int, *, inverse: bool = False) -> I64:
        """What a table's permutation moves, or its inverse.

        Returns
        -------
        int64 (k, 3), read-only
            Source shift, target shift, width, in bits; shifts count from the last bit of the last
            word. Each move lies within one word at both ends, so for b = 64 the permuted word is
            the sum of ((x >> source) & ((1 << width) - 1)) << target. From the first target column
            on; blocks that stay neighbours move as one.

        Raises
        ------
        InvalidOption
            If there is no such table.
        """
        require(is_int(table) and 0 <= table < self.tables, "table", table,
                f"from 0 to {self.tables - 1} in {self.structure}")
        return permutation.moves(self.headers[table], self.bits)[inverse]

    def rotations(self, table: int, *, inverse: bool = False) -> U64:
        """The moves as rotations under masks, for kernels.

        Returns
        -------
        uint64 (k, 4)
            Source word, target word, left rotation, mask:
            permuted[target] |= rotl(x[source], rotation) & mask. Moves of one rotation are one.
        """
        return permutation.rotations(self.moves(table, inverse=inverse), self.bits)

    def permute(self, rows: Any, table: int) -> U64:
        """Rows as the table holds them, in the order given.

        Parameters
        ----------
        rows : uint64 (n,) or (n, W)
            W = b / 64; bit 63 of word 0 comes first.

        Returns
        -------
        uint64, the shape of `rows`
            A copy, also for table 0.

        Raises
        ------
        InvalidBatch
            On another dtype, shape or width.
        InvalidOption
            If there is no such table.

        Notes
        -----
        delta_P of [PSM] (9), for many rows at once. O(n k) for k moves, in slices of rows, so that
        the memory, without the result, is bounded.
        """
        return permutation.permuted(rows, self.rotations(table), self.bits)

    def unpermute(self, rows: Any, table: int) -> U64:
        """Rows as they were before `permute`, whose parameters, errors and cost it has."""
        return permutation.permuted(rows, self.rotations(table, inverse=True), self.bits)

    @property
    def _shape(self) -> exactness.Shape:
        return self.block_count, self.leading, self.inner

    def _headers(self) -> Iterator[tuple[Interval, ...]]:
        blocks = permutation.intervals(self.bits, self.block_count)
        if not self.inner:
            yield from combinations(blocks, self.leading)
            return
        for first, width in blocks:
            for place, inner_width in permutation.intervals(self.bits - width, self.inner):
                # Columns of the rest: those before the outer block, then those behind it.
                before = max(0, min(place + inner_width, first) - place)
                yield tuple(
                    interval for interval in (
                        (first, width), (place, before),
                        (place + before + width, inner_width - before),
                    ) if interval[1]
                )


def designs_for(
    h: int, bits: int = 64, most_tables: int = 32, most_flips: int = 2
) -> list[BlockDesign]:
    """Designs that are exact for h, the fewest tables first.

    Parameters
    ----------
    h : int
        The radius to promise.
    bits : int
        b.
    most_tables, most_flips : int
        Bounds on T and r.

    Returns
    -------
    list of BlockDesign
        By (tables, flips, longest header first). Each has the fewest flips its blocks allow, and
        none is as good or worse than another in tables, flips and shortest header (of which bits
        beyond 40 do not count). Empty if none is exact for h.

    Raises
    ------
    InvalidOption
        If a number is out of range.

    Notes
    -----
    Half a millisecond for 32 tables, a tenth of a second for 4096; less when asked again.
    The remaining flat designs without flips have G = g + h: [PSM] (13).
    """
    require(is_int(h) and h >= 0, "h", h, "a whole number from 0")
    require(is_int(bits) and 64 <= bits <= MAX_BITS and bits % 64 == 0,
            "bits", bits, f"a multiple of 64 from 64 to {MAX_BITS}")
    require(is_int(most_tables) and 0 <= most_tables <= MAX_TABLES, "most_tables", most_tables,
            f"from 0 to {MAX_TABLES}")
    require(is_int(most_flips) and most_flips >= 0, "most_flips", most_flips, "0 or more")
    return list(_designs_for(h, bits, most_tables, most_flips))


@lru_cache(maxsize=256)
def _designs_for(
    h: int, bits: int, most_tables: int, most_flips: int
) -> tuple[BlockDesign, ...]:
    kept: list[tuple[int, int, BlockDesign]] = []
    found = exactness.exact_shapes(h, bits, most_tables, most_flips)
    for _, flips, header, shape in sorted(found):
        # An earlier one has no more tables.
        if any(f <= flips and t <= header for f, t, _ in kept):
            continue
        try:
            kept.append((flips, header, BlockDesign(*shape, flips, bits)))
        except InvalidOption:
            continue  # blocks no wider than the flips
    return tuple(design for _, _, design in kept)
