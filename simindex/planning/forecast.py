"""What an index would take and reach, before there is one: methods side by side, from sizes alone.

    rows, h, recall, memory -> psm | psm exact | block designs | scan -> bytes, queries a second

A forecast is of one thread. Memory is what a search must have at hand: fingerprints of all tables,
and header directories. Ids stand on disk beside them, and are read for matches only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb

from simindex.checks import is_int
from simindex.errors import InvalidOption
from simindex.methods import issl
from simindex.options import SLICE_LISTS
from simindex.planning import registry
from simindex.planning.costs import CALL_NS, issl_ns, top_scanning_ns
from simindex.planning.machine import Machine
from simindex.planning.model import ONLINE_QUERIES, Forecast, Sizes
from simindex.planning.question import check_options
from simindex.simhash.radius import raw_radius
from simindex.storage.tables.record import MAX_ROWS
from simindex.storage.tables.slicelist import WIDE_BITS, SliceDesign

MOST_ROWS = 1 << 48


@dataclass(frozen=True, slots=True)
class SliceForecast:
    """What slice lists take beside the rows."""

    structure: str
    slices: int
    """s."""
    slice_bits: int
    """w."""
    segments: int
    """Each has 2^w s lists of its own."""
    disk_bytes: int
    """[ISSL] section 3: 4 (n s + 2^w s), and 4 s for the ends, summed over the segments."""
    disk_bytes_per_row: float
    top_queries_s: float
    """The 10 nearest by these lists with max_error 2, if fingerprints are uniform: rows that crowd
    make lists long that are asked for."""
    top_scan_queries_s: float
    """The same by comparing all rows, one query at a time."""
    top_scan_batch_queries_s: float
    """And many at a time."""


TOP_K, TOP_MAX_ERROR = 10, 2
"""What is asked of slice lists in a forecast."""


def slice_forecast(
    rows: int, *, bits: int, structure: str = SLICE_LISTS, machine: Machine | None = None
) -> SliceForecast | None:
    """What the slice lists of as few segments as possible take; None for narrow fingerprints.

    These have "issl" only if an index is told so: lists of 8 bits are long.
    """
    _check_size(rows, bits)
    if structure == SLICE_LISTS and bits < WIDE_BITS:
        return None
    design, segments = SliceDesign.parse(structure, bits), -(-rows // MAX_ROWS)
    size = design.list_bytes(rows) + (segments - 1) * design.list_bytes(0)
    each, words, machine = -(-rows // segments), bits // 64, machine or Machine()
    lists = design.slices * sum(comb(design.width, flips) for flips in range(TOP_MAX_ERROR + 1))
    rerank = issl.default_rerank(
        each, TOP_K, TOP_MAX_ERROR, width=design.width, slices=design.slices
    )
    listed_ns = issl_ns(machine, each, words, lists, each * lists / design.lists, rerank)
    alone_ns, shared_ns = (
        top_scanning_ns(machine, each, words, queries) for queries in (1, ONLINE_QUERIES)
    )
    return SliceForecast(
        structure, design.slices, design.width, segments, size, size / rows,
        top_queries_s=1e9 / (CALL_NS + segments * listed_ns),
        top_scan_queries_s=1e9 / (CALL_NS + segments * alone_ns),
        top_scan_batch_queries_s=1e9 / (segments * shared_ns),
    )


def forecast(
    rows: int,
    *,
    h: int | None = None,
    recall: float = 1.0,
    bits: int = 64,
    memory_bytes: int | None = None,
    machine: Machine | None = None,
) -> list[Forecast]:
    """Every method that keeps the promise, and exact PSM; the fastest that fits is marked.

    Parameters
    ----------
    h : int, optional
        By default 3 for each 64 bits.
    recall : float
        Below 1, queries are taken to have weights: flips are those expected of weights of a normal
        distribution under the paper's model, more than an index finds that knows near-duplicates.
    memory_bytes : int, optional
        The most that tables and directories may take.
    machine : Machine, optional
        By default the usual constants.

    Raises
    ------
    InvalidOption
        If an option is out of range, or nothing fits the memory; says the least that would do.
    """
    _check_size(rows, bits)
    h = raw_radius(bits) if h is None else h
    recall = check_options(h=h, recall=recall, method="auto", bits=bits)
    asked = Sizes(rows, h, recall, bits, memory_bytes, machine or Machine())
    found = [
        one for row in registry.METHODS.values() if row.forecast is not None
        for one in row.forecast(asked)
    ]
    fitting = [one for one in found if one.fits]
    if not fitting:
        least = min(found, key=lambda one: one.memory_bytes)
        raise InvalidOption(
            f"no method holds {rows:,} rows of {bits} bits in {memory_bytes:,} bytes of memory: "
            f"the least is {least.memory_bytes:,} bytes, by {least.method}",
            remedy="give that, or split the rows over machines", option="memory",
            found=memory_bytes, expected=least.memory_bytes,
        )
    best = max(fitting, key=lambda one: one.queries_s)
    return [replace(one, chosen=one is best) for one in found]


def _check_size(rows: object, bits: object) -> None:
    if not is_int(rows) or not 1 <= rows <= MOST_ROWS:
        raise InvalidOption(
            f"rows={rows!r}", remedy="give a whole number from 1 to 2^48", option="rows", found=rows
        )
    if not is_int(bits) or bits % 64 or not 64 <= bits <= 4096:
        raise InvalidOption(
            f"bits={bits!r}",
            remedy="give a multiple of 64 from 64 to 4096", option="bits", found=bits,
        )
