"""The block designs that an index's options name, checked against its fingerprints' width."""

from __future__ import annotations

from simindex.errors import InvalidOption
from simindex.options import IndexOptions
from simindex.simhash.permutation import BlockDesign
from simindex.storage.permuted import MAX_TABLE


def checked_designs(options: IndexOptions) -> tuple[BlockDesign, ...]:
    """The designs of `options.structures`, in their order.

    Raises
    ------
    InvalidOption
        If one cannot be made of `options.bits` bits, or all together have too many tables.
    """
    designs = tuple(
        BlockDesign.parse(name, options.bits) for name in options.structures if name != "psm"
    )
    tables = sum(design.tables - 1 for design in designs)
    if tables > MAX_TABLE:
        raise InvalidOption(
            f"structures={options.structures!r} have {tables} permuted tables, more than "
            f"{MAX_TABLE}: take fewer",
            option="structures", found=tables, expected=MAX_TABLE,
        )
    return designs
