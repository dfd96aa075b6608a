"""Text files: one document each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from simindex.inputs.document import SKIP_FILES, Document, Source
from simindex.inputs.foreign_formats import HEAD_BYTES, is_json_lines, is_markup
from simindex.inputs.streams import Unreadable, decoded, unmarked, whole


def read_text(stream: BinaryIO, source: Source) -> Iterator[Document]:
    """The one document of a text file, under the source's name; none for a binary file.

    A binary file is a bad record when the caller named it, and passed over when it was found in a
    folder. Other bad records: a file over the limit, bytes that are not UTF-8.
    """
    path, limit, intake = source.path, source.limit, source.intake
    data = whole(stream, limit)
    if b"\0" in data[:HEAD_BYTES]:
        if source.named:
            intake.bad(path, None, "binary file: holds NUL bytes")
        else:
            intake.pass_over(path, "binary file")
        return
    if len(data) > limit:
        intake.bad(
            path, None, f"longer than {limit} bytes",
            "give --format if it has records, such as JSON lines; a text cannot be longer",
        )
        return
    try:
        text = decoded(unmarked(data))
    except Unreadable as reason:
        hint = f"convert it to UTF-8, {SKIP_FILES}"
        intake.bad(path, reason.line, str(reason), reason.remedy, hint=hint)
        return
    intake.markup += is_markup(data)
    intake.like_lines += is_json_lines(data[:HEAD_BYTES], source.text_field)
    yield Document(key=source.name, text=text, path=path)
