"""What one machine takes for the steps of a search, measured and stored with the index."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from math import isfinite
from typing import Any

from simindex.errors import CorruptFile, raised_by_a_handler

Curve = tuple[tuple[float, float], ...]
"""Points (x, y) in rising x, joined by lines; see `costs.along`."""

Level = tuple[int, Curve]
"""(bytes of a table and its directory, ns of a probe by the rows under its header)."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What a machine takes for each step of a search; the defaults are those of one Xeon.

    The first six are the papers' constants, the others are the engine's (`costs`).
    """

    delta_r_ns: float = 46.0
    """delta R: a random access that is waited for: a step of a binary search."""
    delta_l_ns: float = 1.8
    """delta L: the next row of a linear scan."""
    delta_v_ns: float = 4.3
    """delta V: a flip set in VOSH order, for each level of the heap."""
    delta_p_ns: float = 1.5
    """delta P: permuting a fingerprint for a table."""
    delta_s_ns: float = 1.4
    """delta S: moving a fingerprint while sorting, for each bit of log2 m."""
    disk_bytes_s: float = 1e9
    """D: sequential reading."""
    levels: tuple[Level, ...] = (
        (25_000, ((11.4, 15.0), (46.0, 20.0), (366.0, 45.0))),
        (416_000, ((12.2, 15.0), (49.0, 22.0), (391.0, 60.0))),
        (6_660_000, ((12.2, 19.0), (49.0, 33.0), (391.0, 150.0))),
        (52_200_000, ((11.4, 26.0), (46.0, 45.0), (366.0, 300.0))),
        (192_000_000, ((11.0, 30.0), (44.0, 60.0), (351.0, 400.0))),
    )
    """Probes that are in flight together, by where the table fits, smallest first."""
    vosh: Curve = ((2, 25.0), (6, 55.0), (32, 220.0), (96, 1_000.0), (256, 3_800.0))
    """A query's flip sets in VOSH order by sorting networks, by their number."""
    heaped: Curve = ((3, 42.0), (6, 80.0))
    """A flip set by heap, for many flips, by h."""
    swept: Curve = ((11.0, 16.0), (111.0, 36.0))
    """A probe of a sweep, written to its partition and read again, by the rows under its header."""
    bucketed: Curve = ((88.0, 45.0), (700.0, 130.0))
    """The same where a sweep goes bucket by bucket."""
    streamed_ns: float = 0.4
    """A row that a sweep brings in from memory."""
    table_ns: float = 20.0
    """A query's part in one permuted table, beside looking it up: permuting it, and finding what
    it hits again."""
    scanned_ns: float = 0.11
    """A row of a scan, when many queries share its slab."""
    scanned_far_ns: float = 0.2
    """The same within 6 bits and more."""
    scanned_alone_ns: float = 0.68
    """A row of a scan for a single query."""
    top_scanned_ns: float = 0.085
    """A word of 64 bits that a search for the nearest documents scans in columns of bits."""
    top_turned_ns: float = 2.2
    """A word turned into such columns, which all queries of a call share."""
    top_near_ns: float = 0.34
    """A word that a single query scans in a table near the processor."""
    top_alone_ns: float = 0.68
    """The same in memory."""
    issl_cleared_ns: float = 0.02
    """A row's part in a query of slice lists, whatever they hold."""
    issl_list_ns: float = 23.0
    """A slice list found, however short."""
    issl_scored_ns: float = 7.5
    """A row of a list scored."""
    issl_reranked_ns: float = 5.0
    """A row compared, of those of highest score."""
    measured: bool = False
    """Whether these are of the machine at hand, by `measurement.measure`."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the catalog and for people."""
        return {
            **asdict(self),
            **{name: [list(point) for point in getattr(self, name)] for name in CURVES},
            "levels": [[size, [list(point) for point in curve]] for size, curve in self.levels],
        }

    @classmethod
    def from_dict(cls, values: Any) -> Machine:
        """The machine that `to_dict` described; CorruptFile if it describes none."""
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
"""Where nothing was measured."""

CURVES = {"vosh": "flips", "heaped": "h", "swept": "rows", "bucketed": "rows"}
"""Fields that are curves, and what they run over."""


def _curve(points: Any) -> Curve:
    """The points as stored; ValueError unless there are any, rising, and all above 0."""
    curve = tuple((float(x), float(y)) for x, y in points)
    rising = all(a[0] < b[0] for a, b in pairwise(curve))
    if not curve or not rising or not all(isfinite(v) and v > 0 for xy in curve for v in xy):
        raise ValueError("a curve has no points, or not rising ones above 0")
    return curve
