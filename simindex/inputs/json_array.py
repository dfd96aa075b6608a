"""A JSON array of objects: read one object at a time, as if each stood on a line of its own."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import BinaryIO

from simindex.inputs.document import Document, Source, Unusable
from simindex.inputs.json_lines import Records
from simindex.inputs.streams import Unreadable, exactly, some, unmarked

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[]["{},]', re.DOTALL)
"""A string, or what opens, closes and divides; a quote alone opens a string that is not all there.
"""

CHUNK_BYTES = 1 << 16


def read_array(stream: BinaryIO, source: Source) -> Iterator[Document]:
    """Documents of an array, in its order; without the id field they are named ``name:number``.

    Bad records: those of `read_jsonl`, at their number in the array. An element longer than the
    limit, and an array that is not closed, ends the reading of the file.
    """
    records = Records(source)
    number = 0
    try:
        for number, element in enumerate(_elements(stream, source.limit), 1):
            document = records.document(element, number, is_line=False)
            if document is not None:
                yield document
    except (Unusable, Unreadable) as reason:
        what = f"{reason}, so the rest was not read"
        raise Unreadable(what, number + 1, reason.remedy) from reason


def _elements(stream: BinaryIO, limit: int) -> Iterator[bytes]:
    """The elements of an array as they are written, without white space around them."""
    held = unmarked(exactly(stream, max(CHUNK_BYTES, len(BOM_UTF8)))).lstrip()
    while not held and (more := some(stream, CHUNK_BYTES)):
        held = more.lstrip()
    if held[:1] != b"[":
        raise Unusable("not a JSON array")
    start = at = 1
    depth, elements = 0, 0
    while True:
        for token in _TOKEN.finditer(held, at):
            if token[0] == b'"':
                at = token.start()
                break
            at, mark = token.end(), token[0][:1]
            if mark in b"[{":
                depth += 1
            elif mark in b"]}" and depth:
                depth -= 1
            elif mark == b"}":
                raise Unusable("not JSON: a brace closes what was not opened")
            elif mark in b",]" and not depth:
                element = held[start : token.start()].strip()
                if mark == b"," or element or elements:
                    elements += 1
                    yield element
                if mark == b"]":
                    _require_end(stream, held[at:])
                    return
                start = at
        else:
            at = len(held)
        held, at, start = held[start:], at - start, 0
        if len(held) > limit:
            raise Unusable(f"an element is longer than {limit} bytes")
        more = some(stream, max(CHUNK_BYTES, len(held)))
        if not more:
            raise Unusable("truncated: the array is not closed")
        held += more


def _require_end(stream: BinaryIO, rest: bytes) -> None:
    """Refuses anything but white space."""
    while not rest.strip():
        rest = some(stream, CHUNK_BYTES)
        if not rest:
            return
    raise Unusable("not JSON: something follows the array")
