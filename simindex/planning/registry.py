"""The methods there are. A further one is a module of its own and a row here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from simindex.methods import bphs, issl, psm, scan, searches
from simindex.options import is_structure
from simindex.planning import candidates, top_candidates
from simindex.planning.method import Method, TopMethod

METHODS: dict[str, Method] = {
    row.name: row
    for row in (
        Method(
            psm.NAME, candidates.probed, searches.by_headers, searches.by_swept_headers, lossy=True,
            held_bytes=candidates.probed_bytes, passes=candidates.probed_passes,
        ),
        Method(
            bphs.NAME, candidates.permuted, searches.by_permuted_tables, searches.by_query_tables,
            has_designs=True, available=candidates.designs_available,
            held_bytes=candidates.permuted_bytes, passes=candidates.query_tables_passes,
        ),
        Method(
            issl.NAME, candidates.by_lists, searches.by_slice_lists,
            available=candidates.lists_available, survey=candidates.counted,
            held_bytes=candidates.listed_bytes,
            top=TopMethod(
                False, top_candidates.by_lists, top_candidates.search_lists,
                available=top_candidates.check_lists, survey=candidates.counted_top,
            ),
        ),
        Method(
            scan.NAME, candidates.scans, searches.by_all_rows, searches.by_streamed_rows,
            passes=candidates.scan_passes,
            top=TopMethod(True, top_candidates.scans, top_candidates.search_rows),
        ),
    )
}
"""By the names that calls may ask for."""

ANY_TABLE = METHODS[scan.NAME]
"""The method that answers every question of every table, exactly, in any memory."""


def of(method: str) -> Method:
    """The method of a plan, which may name a design; or of a call, unless that is "auto"."""
    return METHODS[method.partition(":")[0]]


def asked(method: str) -> tuple[Method, ...]:
    """What a call may be answered by."""
    return tuple(METHODS.values()) if method == "auto" else (of(method),)


def names() -> tuple[str, ...]:
    """What calls may ask for, beside the names of designs."""
    return ("auto", *METHODS)


def top_names() -> tuple[str, ...]:
    """What searches for the nearest documents may ask for."""
    return ("auto", *(name for name, row in METHODS.items() if row.top is not None))


def top_of(method: str) -> TopMethod:
    """How one of these finds them."""
    top = METHODS[method].top
    assert top is not None
    return top


def names_design(method: object) -> bool:
    """Whether a method is asked for by the name of a block design, of the right form or not."""
    if not isinstance(method, str) or ":" not in method:
        return False
    row = METHODS.get(method.partition(":")[0])
    return row is not None and row.has_designs


def is_known(method: object) -> bool:
    """Whether a call may ask for it."""
    if names_design(method):
        return is_structure(str(method))
    return isinstance(method, str) and method in names()


@contextmanager
def registered(row: Method) -> Iterator[None]:
    """Has a method among the others for a while."""
    METHODS[row.name] = row
    try:
        yield
    finally:
        del METHODS[row.name]
