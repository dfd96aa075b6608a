"""Arrays of numpy, uint64 (n,) or (n, W), as fingerprints: read in parts, never whole."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, BinaryIO

from simindex.inputs.document import Source, Unusable
from simindex.inputs.fingerprints import CHUNK_ROWS, Fingerprints, require_width
from simindex.inputs.streams import Unreadable, exactly
from simindex.options import MAX_BITS


def read_npy(stream: BinaryIO, source: Source) -> Iterator[Fingerprints]:
    """Rows of an array, in its order, without names.

    The file is one bad record if it holds another array, and at the row where it breaks off.
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


def _shape(stream: BinaryIO) -> tuple[int, ...]:
    """The shape of the array that follows; Unusable if its numbers are not fingerprints."""
    import numpy as np

    from simindex.records.arguments import conversion

    formats = {(1, 0): np.lib.format.read_array_header_1_0,
               (2, 0): np.lib.format.read_array_header_2_0}
    header: Any = SimpleNamespace(read=partial(exactly, stream))
    try:
        version = np.lib.format.read_magic(header)
        if version not in formats:
            raise ValueError(f"version {version[0]}.{version[1]}")
        shape, by_columns, dtype = formats[version](header)
    except (ValueError, EOFError) as error:
        raise Unusable(f"not an array of numpy: {str(error).splitlines()[0]}") from None
    if dtype != np.dtype("<u8") or len(shape) not in (1, 2):
        what = f"an array of {dtype.name}" if dtype.isnative else f"an array of {dtype.str}"
        raise Unusable(
            f"{what} and shape {shape}, not uint64 of shape (n,) or (n, W)",
            conversion(dtype, shape),
        )
    if by_columns and len(shape) == 2 and shape[1] > 1:
        raise Unusable(
            "its rows are not one after the other (Fortran order)",
            "save numpy.ascontiguousarray(rows)",
        )
    return shape
