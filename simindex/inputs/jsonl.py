"""JSON lines: one object a line, with a text field and perhaps a key field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from simindex.inputs.document import Document, Intake, Unusable, key_of, text_of
from simindex.inputs.streams import Unreadable, decoded, lines, unmarked

MAX_VALUES = 1 << 20
"""Most commas and brackets of a record outside of its strings. Each stands for a value, and a value
of two bytes takes 64 in memory: a line of 64 MiB might else take gigabytes."""

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)
"""A string, or what an unclosed one leaves of the line: so it matches at every quote, and a line is
read once."""


def read_jsonl(
    stream: BinaryIO,
    *,
    path: str,
    name: str,
    text_field: str,
    key_field: str,
    limit: int,
    intake: Intake,
) -> Iterator[Document]:
    """Documents of a stream of JSON lines, in its order.

    A record without the key field is named ``name:line``. Lines of nothing but white space are
    passed over. Bad records: a line over `limit` bytes or of more than MAX_VALUES values, bytes
    that are no UTF-8, no JSON, no object, no text field, a text that is no string.
    """
    for number, line in lines(stream, limit):
        if line is None:
            intake.bad(path, number, f"line longer than {limit} bytes")
            continue
        if number == 1:
            line = unmarked(line)
        if not line or line.isspace():
            continue
        try:
            record = _record(line)
            if text_field not in record:
                raise Unusable(f"lacks the field {text_field!r} (it has {_listed(record)})")
            document = Document(
                key=key_of(record.get(key_field), key_field, f"{name}:{number}"),
                text=text_of(record[text_field], text_field),
                fields=record,
                path=path,
                line=number,
                raw=line,
            )
        except (Unusable, Unreadable) as reason:
            intake.bad(path, number, str(reason))
            continue
        yield document


def _record(line: bytes) -> dict[str, Any]:
    if _values(line) > MAX_VALUES and _values(_STRING.sub(b"", line)) > MAX_VALUES:
        raise Unusable(f"holds more than {MAX_VALUES:,} values")
    text = decoded(line.rstrip(b"\r\n"))
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise Unusable(f"not JSON: {error.msg} at column {error.pos + 1}") from None
    except ValueError:
        # The interpreter refuses to convert whole numbers of thousands of digits.
        raise Unusable("not JSON this can read: a number has too many digits") from None
    except RecursionError:
        raise Unusable("not JSON this can read: nested too deeply") from None
    if not isinstance(record, dict):
        raise Unusable("not a JSON object")
    return record


def _values(line: bytes) -> int:
    return sum(map(line.count, (b",", b"[", b"{")))


def _listed(record: dict[str, Any]) -> str:
    names = [repr(name[:40]) for name in list(record)[:6]]
    return ", ".join(names) + (", ..." if len(record) > 6 else "") if names else "no fields"
