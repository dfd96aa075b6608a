"""Arrays of numpy, uint64 (n,) or (n, W), as fingerprints: read in parts, never whole."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, BinaryIO

from simindex.inputs.document import Source, Unusable
from simindex.inputs.fingerprints import CHUNK_ROWS, Fingerprints, require_width
from simindex.inputs.magics import NPY_MAGIC
from simindex.inputs.streams import Unreadable, exactly
from simindex.options import MAX_BITS

AS_ROW = "save an array of one row, as numpy.atleast_1d makes of a number"

MAX_HEADER_BYTES = 1 << 16
"""Longest header: numpy itself refuses those of more than 10,000 bytes."""

MOST_ROWS = 1 << 63

SHOWN_REASON = 200
"""Characters of what numpy says of a header."""


def read_npy(stream: BinaryIO, source: Source) -> Iterator[Fingerprints]:
    """Rows of an array, in its order, without names.

    The file is one bad record if it holds another array, at the row where it breaks off, and where
    something follows the array.
    """
    import numpy as np

    from simindex.records.batch import Batch

    try:
        shape = _shape(stream)
        rows, width = shape[0], shape[1] if len(shape) == 2 else 1
        if not 0 < 64 * width <= MAX_BITS:
            raise Unusable(
                f"holds fingerprints of {64 * width} bits, not 64 to {MAX_BITS}, in an array of "
                f"shape {shape}"
            )
        require_width(64 * width, source.intake)
    except Unusable as reason:
        source.intake.bad(source.path, None, str(reason), reason.remedy)
        return
    chunk = max(1, CHUNK_ROWS // width)
    for start in range(0, rows, chunk):
        stop = min(start + chunk, rows)
        data = exactly(stream, 8 * width * (stop - start))
        whole = len(data) // (8 * width)
        part = np.frombuffer(data, "<u8", whole * width).reshape(whole, width)
        if whole:
            yield Fingerprints(
                Batch(part.astype(np.uint64, copy=False)), source.path,
                range(start, start + whole), "{}[{}]",
            )
        if whole < stop - start:
            raise Unreadable(f"truncated: {start + whole:,} of its {rows:,} rows are there")
    _require_end(stream)


def _require_end(stream: BinaryIO) -> None:
    """Unreadable if the file goes on behind its array."""
    more = exactly(stream, len(NPY_MAGIC))
    if more == NPY_MAGIC:
        raise Unreadable(
            "another array follows the first, and was not read",
            remedy="save each array in a file of its own",
        )
    if more:
        raise Unreadable("other bytes follow its array", remedy="save the array again")


def _part(stream: BinaryIO, size: int) -> bytes:
    """So many bytes of a header, or fewer where the file ends."""
    if size > MAX_HEADER_BYTES:
        raise Unusable(f"not an array of numpy: its header has {size:,} bytes")
    return exactly(stream, size)


def _shape(stream: BinaryIO) -> tuple[int, ...]:
    """The shape of the array that follows; Unusable if its numbers are not fingerprints."""
    import numpy as np

    from simindex.records.arguments import conversion

    formats = {(1, 0): np.lib.format.read_array_header_1_0,
               (2, 0): np.lib.format.read_array_header_2_0}
    header: Any = SimpleNamespace(read=partial(_part, stream))
    try:
        version = np.lib.format.read_magic(header)
        if version not in formats:
            raise ValueError(f"version {version[0]}.{version[1]}")
        shape, by_columns, dtype = formats[version](header)
    except (Unreadable, Unusable):
        raise
    except (ValueError, EOFError) as error:
        reason = str(error).split("\n", 1)[0][:SHOWN_REASON]
        raise Unusable(f"not an array of numpy: {reason}") from None
    except Exception as error:  # it evaluates a text, which raises whatever that leads to
        raise Unusable(
            f"not an array of numpy: its header is damaged ({type(error).__name__})"
        ) from None
    for size in shape:
        if isinstance(size, bool) or not 0 <= size < MOST_ROWS:
            shown = f"{size}" if abs(size) < MOST_ROWS else "a number of more than 63 bits"
            raise Unusable(f"not an array of numpy: its shape holds {shown}")
    if dtype != np.dtype("<u8") or len(shape) not in (1, 2):
        what = f"an array of {dtype.name}" if dtype.isnative else f"an array of {dtype.str}"
        raise Unusable(
            f"{what} and shape {str(shape)[:SHOWN_REASON]}, not uint64 of shape (n,) or (n, W)",
            AS_ROW if shape == () else conversion(dtype, shape),
        )
    if by_columns and len(shape) == 2 and shape[1] > 1:
        raise Unusable(
            "its rows are not one after the other (Fortran order)",
            "save numpy.ascontiguousarray(rows)",
        )
    return shape
