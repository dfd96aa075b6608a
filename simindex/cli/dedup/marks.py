"""What `dedup` writes: documents as they were read, marked ones, and lines of the audit.

A mark is spliced into the line before the brace that ends it, so all else stays byte for byte:

    {"id": 7, "text": "..."}
    {"id": 7, "text": "...", "near_duplicate_of": {"key": "5", "distance": 2}}
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping
from json.encoder import encode_basestring
from math import nan
from typing import TYPE_CHECKING, Any, NamedTuple

from simindex.cli.similarity import schema_of_similarity, similarity_of, within
from simindex.inputs.fields import MISSING, field_of
from simindex.outputs.columns import Schema

if TYPE_CHECKING:
    from simindex.inputs.document import Document
    from simindex.inputs.document_columns import Documents
    from simindex.pairs.buffer_losses import Nearness

MARK = "near_duplicate_of"

def schema_of_audit(*, verified: bool) -> Schema:
    """The columns of the audit, of a run that compares texts or of another one."""
    return {
        "dropped": "text", "lost_to": "text", "distance": "uint16",
        **schema_of_similarity(True, verified=verified), "dropped_at": "text", "why": "text",
        "lost_to_at": "text",
    }


AUDIT_BEGINS = b'{"dropped": '
AUDIT_ENDS = b', "why": '
"""What each line of the audit begins with, and what ends what it is known by."""

_encode = json.JSONEncoder(ensure_ascii=False).encode
_MARK = MARK.encode()
_MARKS = b', "%b": ' % _MARK
_UNMARKED = b"%bnull}" % _MARKS


SPLICED_LINES = 256
"""At once: what they make stays in the second cache until it is written."""


class Loss(NamedTuple):
    """What a document lost to."""

    key: str
    distance: int
    place: str | None = None
    """Where the winner was read; None of one that is stored in the index."""
    same_text: bool = False
    """Whether both have the same text; of a winner that is stored nobody knows."""
    known: bool = False
    """Whether the document itself is stored, by an earlier run or buffer."""
    exact: float = nan
    """The exact similarity, where texts were compared."""

    def why(self, near: Nearness) -> str:
        """Why it went."""
        if self.known:
            return "same id"
        if self.same_text:
            return "same text"
        if self.distance == 0:
            return "same sketch" if near.sketched else "same fingerprint"
        similar = near.similar
        if similar is None:
            return within(near.h, None)
        return within(near.h, similar.similarity if similar.asked is None else similar.asked)


def line_of(document: Document, id_field: str, text_field: str) -> bytes:
    """The document as a line: of JSONL the one that was read, of others an object."""
    line = document.raw
    if line is None:
        line = _dumped(_fields(document, id_field, text_field))
    return line if line.endswith(b"\n") else line + b"\n"


def kept_lines(documents: Documents, lost: Container[int]) -> bytes:
    """`line_of` each document that is not lost, by its place. The documents have their lines."""
    assert documents.raw is not None
    kept = [line for place, line in enumerate(documents.raw.listed()) if place not in lost]
    if kept and not kept[-1].endswith(b"\n"):  # of a file only its last line may have no end
        kept.append(b"\n")
    return b"".join(kept)


def marked_line(
    document: Document, loss: Loss | None, id_field: str, text_field: str,
    near: Nearness | None = None,
) -> bytes:
    """The same with what it lost to, or null. A line that has a mark is written again.

    The mark has a similarity where `near` asks for one.
    """
    line = document.raw
    if line is None or (b"_" in line and _MARK in line):  # one byte is looked for ten times as fast
        fields = _fields(document, id_field, text_field)
        if line is None or MARK in fields:
            mark = None if loss is None else _values_of(loss, near)
            return _dumped({**fields, MARK: mark}) + b"\n"
    # Nearly all lines end with the brace and a line end, and need no copy without white space.
    brace = len(line) - 2 if line.endswith(b"}\n") else len(line.rstrip()) - 1
    spliced = _UNMARKED if loss is None else _mark_of(loss, near)
    end = line[brace + 1 :]
    return line[:brace] + spliced + (end if end.endswith(b"\n") else end + b"\n")


def _mark_of(loss: Loss, near: Nearness | None) -> bytes:
    """What is spliced in for the brace."""
    if near is None or near.similar is None:
        # As `_values_of` would be written, which takes five times as long.
        try:
            return b'%b{"key": %b, "distance": %d}}' % (
                _MARKS, encode_basestring(loss.key).encode(), loss.distance
            )
        except UnicodeEncodeError:
            pass
    return b"%b%b}" % (_MARKS, _dumped(_values_of(loss, near)))


def _values_of(loss: Loss, near: Nearness | None) -> dict[str, Any]:
    values: dict[str, Any] = {"key": loss.key, "distance": loss.distance}
    if near is not None and near.similar is not None:
        found = similarity_of(
            loss.distance, near.compared_bits, near.similar.measure, loss.exact
        )
        values |= {name: found[name] for name in ("similarity", "similarity_error")}
    return values


def marked_lines(
    documents: Documents, lost: Mapping[int, Loss], id_field: str, text_field: str, near: Nearness
) -> Iterator[Any]:
    """`marked_line` of each document, in parts that are buffers of bytes.

    `lost` has what some of them lost to, by their places. The documents have their lines.
    """
    import numpy as np

    from simindex._kernels import _native

    assert documents.raw is not None
    inserts = [_UNMARKED] * len(documents)
    for place, loss in lost.items():
        inserts[place] = _mark_of(loss, near)
    inserted = np.frombuffer(b"".join(inserts), np.uint8)
    ends = np.zeros(len(inserts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, inserts), np.int64, len(inserts)), out=ends[1:])
    raw, without, place = documents.raw, np.frombuffer(_MARK, np.uint8), 0
    while place < len(documents):
        stop = min(place + SPLICED_LINES, len(documents))
        done, size, lines = _native.spliced_lines(
            raw.data, raw.offsets[place : stop + 1], inserted, ends[place : stop + 1], without
        )
        yield lines[:size].data
        place += done
        if place < stop:
            yield marked_line(documents[place], lost.get(place), id_field, text_field, near)
            place += 1


def audit_record(
    document: Document, loss: Loss, near: Nearness, *, verified: bool = False
) -> dict[str, Any]:
    """What the audit has of a document that was dropped; of a run that compares texts, with
    whether its similarity is exact."""
    measure = "cosine" if near.similar is None else near.similar.measure
    return {
        "dropped": document.key, "lost_to": loss.key, "distance": loss.distance,
        **similarity_of(
            loss.distance, near.compared_bits, measure, loss.exact if verified else None
        ),
        "dropped_at": document.place, "why": loss.why(near), "lost_to_at": loss.place,
    }


def audit_line(record: dict[str, Any]) -> bytes:
    """The same as a line."""
    return _dumped(record) + b"\n"


def _fields(document: Document, id_field: str, text_field: str) -> Any:
    fields = document.fields or {}
    if field_of(fields, text_field) is MISSING:  # of a file, or the headers of an archived page
        return {id_field: document.key, text_field: document.text, **fields}
    return fields


def _dumped(value: Any) -> bytes:
    try:
        return _encode(value).encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can escape only
        return json.dumps(value).encode()
