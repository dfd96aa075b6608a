"""How long the steps of a search take on one machine; measured and stored with the index."""

from __future__ import annotations

from dataclasses import asdict, fields
from itertools import pairwise
from math import isfinite
from typing import Any

from simindex.errors import CorruptFile, raised_by_a_handler
from simindex.values import dataclass

Curve = tuple[tuple[float, float], ...]
"""Points (x, y) in rising x, joined by lines; see `costs.along`."""

Level = tuple[int, Curve]
"""(bytes of a table and its directory, ns of a probe by the rows under its header)."""


@dataclass(frozen=True, slots=True)
class Machine:
    """How long each step of a search takes on a machine. The defaults are those of one Xeon.

    The first six fields are the papers' constants. The others are constants of the engine.
    """

    delta_r_ns: float = 46.0
    """delta R: a random access that the next step waits for, as in a binary search."""
    delta_l_ns: float = 1.8
    """delta L: the next row of a linear scan."""
    delta_v_ns: float = 4.3
    """delta V: a flip set in VOSH order, for each level of the heap."""
    delta_p_ns: float = 1.5
    """delta P: to permute a fingerprint for a table."""
    delta_s_ns: float = 1.4
    """delta S: to move a fingerprint while sorting, for each bit of log2 m."""
    disk_bytes_s: float = 1e9
    """D: bytes a second that are read in order."""
    levels: tuple[Level, ...] = (
        (25_000, ((11.4, 15.0), (46.0, 20.0), (366.0, 45.0))),
        (416_000, ((12.2, 15.0), (49.0, 22.0), (391.0, 60.0))),
        (6_660_000, ((12.2, 19.0), (49.0, 33.0), (391.0, 150.0))),
        (52_200_000, ((11.4, 26.0), (46.0, 45.0), (366.0, 300.0))),
        (192_000_000, ((11.0, 30.0), (44.0, 60.0), (351.0, 400.0))),
    )
    """Times of probes that are in flight together, by the size of the table, smallest first."""
    vosh: Curve = ((2, 25.0), (6, 55.0), (32, 220.0), (96, 1_000.0), (256, 3_800.0))
    """All flip sets of a query in VOSH order by sorting networks, by their number."""
    heaped: Curve = ((3, 42.0), (6, 80.0))
    """A flip set from the heap, for many flips, by h."""
    swept: Curve = ((11.0, 16.0), (111.0, 36.0))
    """A probe of a sweep, written to its partition and read again, by the rows under its header."""
    bucketed: Curve = ((88.0, 45.0), (700.0, 130.0))
    """The same if a sweep goes bucket by bucket."""
    streamed_ns: float = 0.4
    """A row that a sweep reads from memory."""
    table_ns: float = 20.0
    """The work for a query in one permuted table, without the look-up: to permute the query, and to
    look up its hits again."""
    scanned_ns: float = 0.11
    """A row of a scan, if many queries share its slab."""
    scanned_far_ns: float = 0.2
    """The same for distances of 6 bits and more."""
    scanned_alone_ns: float = 0.68
    """A row of a scan for a single query."""
    top_scanned_ns: float = 0.085
    """A word of 64 bits that `Index.top` scans in columns of bits."""
    top_turned_ns: float = 2.2
    """A word turned into such columns, which all queries of a call share."""
    top_near_ns: float = 0.34
    """A word that a single query scans in a table that fits into a cache."""
    top_alone_ns: float = 0.68
    """The same in memory."""
    issl_cleared_ns: float = 0.02
    """The work for each row of a segment in a query of slice lists."""
    issl_list_ns: float = 23.0
    """The look-up of a slice list of any length."""
    issl_scored_ns: float = 7.5
    """A row of a list that gets its score."""
    issl_reranked_ns: float = 5.0
    """A row of a high score that is compared."""
    measured: bool = False
    """Whether these were measured on this machine."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the catalog and for people."""
        return {
            **asdict(self),
            **{name: [list(point) for point in getattr(self, name)] for name in CURVES},
            "levels": [[size, [list(point) for point in curve]] for size, curve in self.levels],
        }

    @classmethod
    def from_dict(cls, values: Any) -> Machine:
        """The machine that `to_dict` described. Raises CorruptFile if the values are not valid."""
        names = {field.name for field in fields(cls)}
        try:
            known = {name: value for name, value in values.items() if name in names}
            levels = tuple((int(size), _curve(points)) for size, points in known.pop("levels"))
            curves: dict[str, Any] = {name: _curve(known.pop(name)) for name in CURVES}
            measured = bool(known.pop("measured"))
            numbers: dict[str, Any] = {name: float(value) for name, value in known.items()}
            sound = all(isfinite(x) and x > 0 for x in numbers.values())
            others = {"levels", "measured", *CURVES}
            if not levels or not sound or numbers.keys() != names - others:
                raise ValueError("a constant is missing or not above 0")
            return cls(**numbers, **curves, levels=levels, measured=measured)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            if raised_by_a_handler(error):
                raise
            raise CorruptFile(
                f"the catalog's record meta/machine does not describe a machine: {error}",
                remedy="run `simindex tune` to write it again", path="meta/machine",
            ) from error


USUAL = Machine()
"""The constants of another machine, used until `tune` has measured this one."""

CURVES = {"vosh": "flips", "heaped": "h", "swept": "rows", "bucketed": "rows"}
"""Fields that are curves, and what they run over."""


def _curve(points: Any) -> Curve:
    """The points as stored; ValueError unless there are any, rising, and all above 0."""
    curve = tuple((float(x), float(y)) for x, y in points)
    rising = all(a[0] < b[0] for a, b in pairwise(curve))
    if not curve or not rising or not all(isfinite(v) and v > 0 for xy in curve for v in xy):
        raise ValueError("a curve has no points, or not rising ones above 0")
    return curve
