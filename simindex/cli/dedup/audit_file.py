"""The audit of `dedup`: a file with a line for each document that was dropped.

    --audit FILE            the lines of this run; FILE is overwritten
    --audit FILE --index    lines are added to FILE, except those that it has
    --audit FILE.csv        a table instead of lines (or .parquet), which is there at the end

Two lines are the same if they differ in `why` and `lost_to_at` only, the last fields: a second run
finds in the index what the first one found beside the document, and cannot compare the texts.
Memory holds 16 bytes of each line of FILE.
"""

from __future__ import annotations

import io
import os
import stat
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

import numpy as np

from simindex.bits.digests import blake2b
from simindex.cli.dedup.marks import AUDIT_BEGINS, AUDIT_ENDS, audit_line
from simindex.cli.dedup.unbuffered_file import Unbuffered
from simindex.cli.shared_options import as_typed
from simindex.errors import InvalidOption
from simindex.outputs.columns import Schema, Write
from simindex.outputs.formats import Format

if TYPE_CHECKING:
    from numpy.typing import NDArray

DIGEST_BYTES = 16


def audit_typed() -> str:
    """The option that names the audit, as it was typed."""
    return as_typed("--audit", "--certificates")


class Audit(Protocol):
    """An open audit, which takes records of `marks.audit_record`."""

    def write(self, records: Sequence[dict[str, Any]]) -> None:
        """Adds records."""

    def settle(self) -> None:
        """Hands over what was written, as far as the format allows."""


class Listing:
    """JSON lines."""

    def __init__(self, file: BinaryIO, told: NDArray[np.bytes_]) -> None:
        self._file = file
        self._told = told
        """Digests of the lines that the file had, in order."""

    def write(self, records: Sequence[dict[str, Any]]) -> None:
        """Adds the lines that the file did not have when it was opened."""
        if not records:
            return
        lines = [*map(audit_line, records)]
        if len(self._told):
            digests = np.array([_digest(line) for line in lines], self._told.dtype)
            place = np.searchsorted(self._told, digests)
            there = self._told[np.minimum(place, len(self._told) - 1)] == digests
            lines = [line for line, told in zip(lines, there.tolist(), strict=True) if not told]
        with _named(self._file):
            self._file.write(b"".join(lines))

    def settle(self) -> None:
        """Hands over what was written: to the disk, where it is a file."""
        with _named(self._file):
            settle(self._file)


@contextmanager
def _named(file: BinaryIO) -> Iterator[None]:
    """Has an error of the system name the audit, which is not the output."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or file.name
        raise


def settle(stream: BinaryIO) -> None:
    """Hands over what was written: to the disk, where the stream is a file."""
    stream.flush()
    try:
        fd = stream.fileno()
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return
    except io.UnsupportedOperation:
        return
    os.fsync(fd)


class Table:
    """A format of `simindex.outputs`, which ends with the run."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def write(self, records: Sequence[dict[str, Any]]) -> None:
        """Adds rows."""
        if records:
            self._write({name: [record[name] for record in records] for name in records[0]})

    def settle(self) -> None:
        """Nothing yet: the file gets its name at the end."""


@contextmanager
def table(path: Path, row: Format, schema: Schema) -> Iterator[Table]:
    """The audit in another format than JSON lines, at its path after a clean exit."""
    with row.to_file(path, audit_typed(), schema) as write:
        yield Table(write)


@contextmanager
def listing(path: Path, *, adding: bool) -> Iterator[Listing]:
    """The audit at a path, emptied unless lines are to be added to it."""
    try:
        file = cast(BinaryIO, Unbuffered(path, "ab" if adding else "wb"))
    except OSError as error:
        raise InvalidOption(
            f"{audit_typed()} {path} cannot be written: {error.strerror}",
            remedy="name a file in a folder that exists", option=audit_typed().lstrip("-"),
            path=str(path),
        ) from error
    try:
        told = array("B")
        if adding and stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            with path.open("rb") as there:
                _read(there, file, told)
        digests = np.frombuffer(told, f"S{DIGEST_BYTES}") if told else np.empty(0, "S1")
        yield Listing(file, np.sort(digests))
    finally:
        with _named(file):
            file.close()


def _read(there: BinaryIO, file: BinaryIO, told: array[int]) -> None:
    """Notes the lines of an audit. A last line that a kill has cut is removed."""
    whole = 0
    for line in there:
        if line.endswith(b"\n"):
            told.frombytes(_digest(line))
            whole += len(line)
        elif line.startswith(AUDIT_BEGINS) or AUDIT_BEGINS.startswith(line):
            file.truncate(whole)
        else:
            file.write(b"\n")


def _digest(line: bytes) -> bytes:
    return blake2b(line.rpartition(AUDIT_ENDS)[0] or line, digest_size=DIGEST_BYTES).digest()
