"""Text files: one document a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO

from simindex.inputs.document import Document, Intake
from simindex.inputs.streams import Unreadable, decoded, unmarked, whole

SNIFFED_BYTES = 8192
"""A NUL byte among the first so many makes a file a binary one, as in git."""


def read_text(
    stream: BinaryIO, *, path: str, key: str, limit: int, intake: Intake, named: bool
) -> Iterator[Document]:
    """The one document of a text file; none for a binary file.

    A binary file is a bad record when it was `named` by the caller, and passed over when it was
    found in a folder. Other bad records: a file over `limit` bytes, bytes that are no UTF-8.
    """
    data = whole(stream, limit)
    if b"\0" in data[:SNIFFED_BYTES]:
        if named:
            intake.bad(path, None, "binary file: holds NUL bytes")
        else:
            intake.passed_over["binary file"] += 1
        return
    if len(data) > limit:
        intake.bad(path, None, f"longer than {limit} bytes (records? then give --format)")
        return
    try:
        text = decoded(unmarked(data))
    except Unreadable as reason:
        intake.bad(path, reason.line, str(reason))
        return
    yield Document(key=printable(key), text=text, path=path)


def printable(name: str) -> str:
    """A file's name as valid Unicode; bytes that are no UTF-8 become ``\\xNN``."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
