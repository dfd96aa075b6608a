"""What queries read of a file is compared with its checksums when it is first touched.

    Map            a file's memory map, with a `_native.Verified` for each section
    array on it    -> the section it is part of -> chunks of 64 KiB, each with a mark

    "lazy"     a chunk when it is first touched in this mapping, by whatever reads it
    "open"     all chunks when the file is opened
    "never"    none; then damage gives wrong answers

Marks live as long as the mapping, which snapshots share, and are those of all threads. So bytes
that were damaged at rest are found before an answer rests on them; bytes that change on the disk
or in memory after their first touch are not, until the file is mapped again.

Invariants
1. Who reads an array on a map has passed it through `verified` or `verified_at`, or gives its
   section to the kernel that reads it.
2. Arrays in memory pass through untouched.
"""

from __future__ import annotations

import mmap
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.arrays import I64

Verify = Literal["lazy", "open", "never"]

VERIFY: tuple[Verify, ...] = ("lazy", "open", "never")

Array = TypeVar("Array", bound=NDArray[Any])


class Map(mmap.mmap):
    """A file's memory map, which an array's owner is recognised by."""

    path: str
    sections: tuple[_native.Verified, ...] = ()
    """Those that are to be verified. They borrow the map's memory, and do not keep it."""


def map_of(values: NDArray[Any]) -> Map | None:
    """The map that an array is on, or None."""
    owner: Any = values
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if isinstance(owner, memoryview):
        owner = owner.obj
    return owner if isinstance(owner, Map) else None


def section_of(values: NDArray[Any]) -> _native.Verified | None:
    """The section that an array is part of; None if it is in memory, or not to be verified."""
    owner = map_of(values)
    if owner is not None and values.size:
        address = values.ctypes.data
        for section in owner.sections:
            if section.address <= address < section.address + section.size:
                return section
    return None


def verified(values: Array, *, threads: int = 1) -> Array:
    """The array itself, once its bytes are found to be those that were written.

    Parameters
    ----------
    values : array
        C-contiguous, or columns of such rows, whose whole rows are then verified.

    Raises
    ------
    CorruptFile
        If they are not, or cannot be read; carries path and offset.

    Notes
    -----
    A microsecond where nothing is left to be verified, else 0.1 s for a GB and what reading takes.
    """
    section = section_of(values)
    if section is not None and section.left:
        size = values.nbytes if values.flags.c_contiguous else len(values) * values.strides[0]
        size = min(size, section.address + section.size - values.ctypes.data)
        section.verify(values.ctypes.data, size, threads)
    return values


def verify_spans(values: NDArray[Any], starts: I64, ends: I64) -> None:
    """Verifies bytes starts[i] to ends[i] - 1 of an array of bytes, those that are within it."""
    section = section_of(values)
    if section is not None and section.left:
        starts, ends = np.clip(starts, 0, len(values)), np.clip(ends, 0, len(values))
        section.verify_spans(values.ctypes.data, starts, np.maximum(starts, ends))


def verify_at(values: NDArray[Any], rows: NDArray[np.integer[Any]]) -> None:
    """Verifies some rows of a C-contiguous array, and reads no more of the file than their chunks.
    """
    section = section_of(values)
    if section is not None and section.left and len(rows):
        starts = rows.astype(np.int64) * values.strides[0]
        section.verify_spans(values.ctypes.data, starts, starts + values.strides[0])


def verified_at(values: NDArray[Any], rows: NDArray[np.integer[Any]]) -> NDArray[Any]:
    """`values[rows]`, once these are found to be what was written."""
    verify_at(values, rows)
    taken: NDArray[Any] = values[rows]
    return taken
