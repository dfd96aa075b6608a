"""The designs that an index's options name, checked against its fingerprints' width."""

from __future__ import annotations

from simindex.bits.design import BlockDesign
from simindex.errors import InvalidOption
from simindex.options import IndexOptions, is_slicing
from simindex.storage.tables.permuted import MAX_TABLE
from simindex.storage.tables.slicelist import SliceDesign


def checked_designs(options: IndexOptions) -> tuple[BlockDesign, ...]:
    """The block designs of `options.structures`, in their order.

    Raises
    ------
    InvalidOption
        If one cannot be made of `options.bits` bits, or all together have too many tables.
    """
    designs = tuple(
        BlockDesign.parse(name, options.bits) for name in options.structures
        if name != "psm" and not is_slicing(name)
    )
    tables = sum(design.tables - 1 for design in designs)
    if tables > MAX_TABLE:
        raise InvalidOption(
            f"structures={options.structures!r} have {tables} permuted tables, more than "
            f"{MAX_TABLE}: take fewer",
            option="structures", found=tables, expected=MAX_TABLE,
        )
    return designs


def slice_design(options: IndexOptions) -> SliceDesign | None:
    """How fingerprints are cut for the slice lists of `options.structures`, if these are there."""
    for name in options.structures:
        if is_slicing(name):
            return SliceDesign.parse(name, options.bits)
    return None
