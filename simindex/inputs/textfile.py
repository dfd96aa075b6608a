"""Text files: one document a file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import BinaryIO

from simindex.inputs.document import Document
from simindex.inputs.source import Source
from simindex.inputs.streams import Unreadable, decoded, unmarked, whole

SNIFFED_BYTES = 8192
"""A NUL byte among the first so many makes a file a binary one, as in git."""

_ESCAPE = re.compile(rb"\\x[0-9a-f]{2}")


def read_text(stream: BinaryIO, source: Source) -> Iterator[Document]:
    """The one document of a text file, under the source's name; none for a binary file.

    A binary file is a bad record when the caller named it, and passed over when it was found in a
    folder. Other bad records: a file over the limit, bytes that are no UTF-8.
    """
    path, limit, intake = source.path, source.limit, source.intake
    data = whole(stream, limit)
    if b"\0" in data[:SNIFFED_BYTES]:
        if source.named:
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
    yield Document(key=source.name, text=text, path=path)


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
