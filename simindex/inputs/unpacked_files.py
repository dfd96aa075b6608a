"""Files that are read at several places, where their bytes come one after the other.

    a pipe, a compressed file  ->  temporary file without a name  ->  read at any place
    any other file                                                ->  read at any place

A compressed file must not fill the disk: what it expands to is bounded, more than that of a file
which is read as it is decompressed. The temporary file is gone when it is closed, also if the
process is killed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import SEEK_END, BytesIO
from typing import BinaryIO, cast

from simindex.inputs.binary_data import HEAD_BYTES
from simindex.inputs.decompressors import DECOMPRESS_IT, compressed_bytes
from simindex.inputs.streams import Unreadable, first_bytes, some

PIECE_BYTES = 1 << 20
"""Written at once."""

FREE_BYTES = 1 << 30
"""A file may expand to so much, however small it is."""

MAX_EXPANSION = 100
"""What takes more may take so many times the compressed bytes that were read by then. Parquet and
Arrow hold few bytes that repeat."""


@contextmanager
def at_any_place(
    stream: BinaryIO, magics: tuple[bytes, ...]
) -> Iterator[tuple[BinaryIO, int]]:
    """A file with the bytes of a stream, at its start, and how many they are.

    What does not begin with one of `magics` is not unpacked: the file has its first bytes. Raises
    Unreadable where the stream breaks off or expands too much, and where the temporary file cannot
    be written.
    """
    if stream.seekable():
        size = stream.seek(0, SEEK_END)
        stream.seek(0)
        yield stream, size
        return
    head = first_bytes(stream, HEAD_BYTES)
    if not head.startswith(magics):
        yield BytesIO(head), len(head)
        return
    with _temporary_file() as file:
        size = 0
        while piece := some(stream, PIECE_BYTES):
            try:
                file.write(piece)
                file.flush()
            except OSError as error:
                raise _no_room(error) from error
            size += len(piece)
            packed = compressed_bytes(stream)
            if packed is not None and size > max(FREE_BYTES, MAX_EXPANSION * packed):
                raise Unreadable(
                    f"expands more than {MAX_EXPANSION} times, beyond {FREE_BYTES >> 20:,} MiB",
                    remedy=DECOMPRESS_IT,
                )
        file.seek(0)
        yield file, size


def _temporary_file() -> BinaryIO:
    try:
        return cast(BinaryIO, tempfile.TemporaryFile(prefix="simindex-"))
    except OSError as error:
        raise _no_room(error) from error


def _no_room(error: OSError) -> Unreadable:
    return Unreadable(
        "cannot be unpacked into a temporary file in "
        f"{tempfile.gettempdir()}: {error.strerror or error}",
        remedy="unpack it yourself, or name another folder in the environment variable TMPDIR",
    )
