"""Text files: one document a file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import BinaryIO

from simindex.inputs.document import Document, Intake
from simindex.inputs.streams import Unreadable, decoded, unmarked, whole

SNIFFED_BYTES = 8192
"""A NUL byte among the first so many makes a file a binary one, as in git."""

_ESCAPE = re.compile(rb"\\x[0-9a-f]{2}")


def read_text(
    stream: BinaryIO, *, path: str, key: str, limit: int, intake: Intake, named: bool
) -> Iterator[Document]:
    """The one document of a text file, under the name `key`; none for a binary file.

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
    yield Document(key=key, text=text, path=path)


def printable(name: str) -> str:
    """A file's name as valid Unicode, another for every name.

    Bytes that are no UTF-8 become ``\\xNN``. In a name with such bytes, and in one that holds what
    looks like them, a backslash becomes ``\\x5c``. All other names stay as they are.
    """
    raw = os.fsencode(name)
    try:
        if not _ESCAPE.search(raw):
            return raw.decode()
    except UnicodeDecodeError:
        pass
    return raw.replace(b"\\", b"\\x5c").decode("utf-8", "backslashreplace")
