"""The pages of a column in a row group of Parquet: what each takes, and which is a dictionary.

    chunk     header, dictionary | header, page | header, page | ...
    header    sizes and encoding of the page behind it, in the compact protocol of Thrift

pyarrow follows these headers and tells of none of them. What the table of contents says of a chunk
need not be true, so how much memory a chunk can take is only known from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from simindex.inputs.streams import Unreadable

HEADER_BYTES = 1 << 10
"""Read of a header at first; it may have the least and the largest text of its page."""

MOST_HEADER_BYTES = 1 << 24
"""pyarrow refuses longer ones, too."""

MOST_NESTING = 16

_DATA, _DICTIONARY, _DATA_2 = 0, 2, 3
_BY_DICTIONARY = (2, 8)
"""Encodings of a page that holds places in the dictionary."""

_IN_FULL = (0, 6)
"""Those of a page that holds each of its texts. Others make texts of parts of those before."""

_EACH_ONCE = (0, *_BY_DICTIONARY)
"""Those of pages of which pyarrow can give each text once."""

_OF_DATA = {_DATA: (5, 1, 2), _DATA_2: (8, 1, 4)}
"""Of pages of both forms: the field of their own header, and in it those of the number of values
and of the encoding."""


class Page(NamedTuple):
    """What its header says."""

    kind: int
    size: int
    """Bytes once it is decompressed."""
    stored: int
    values: int
    """Cells of the column, null or not; 0 of a dictionary."""
    encoding: object
    """None of a dictionary."""


class Chunk(NamedTuple):
    """A column in a row group."""

    size: int
    """Bytes of all pages once they are decompressed."""
    largest: int
    """Bytes of the largest one."""
    dictionary: int
    """Bytes of its dictionary; 0 without."""
    begins_by_dictionary: bool
    """Whether the first rows are places in it, so that who reads one has all of it."""
    values: int
    """Cells of the column, null or not."""
    each_once: bool
    """Whether pyarrow can give each text once."""
    parts: int
    """Bytes of the largest page in which texts are made of parts of those before; 0 without."""


def chunk_at(file: BinaryIO, start: int, stored: int) -> Chunk:
    """The chunk of so many bytes in a file.

    Raises Unreadable if its headers do not add up, or its dictionary is not its first page.
    """
    size = largest = dictionary = values = parts = 0
    begins_by_dictionary, each_once, has_data = False, True, False
    whole = (*_IN_FULL, *_BY_DICTIONARY)
    for number, page in enumerate(_pages(file, start, start + stored)):
        size, largest = size + page.size, max(largest, page.size)
        if page.kind == _DICTIONARY:
            if number:
                raise Unreadable("damaged: the dictionary of a column is not its first page")
            dictionary = page.size
        elif page.kind in _OF_DATA:
            begins_by_dictionary |= not has_data and page.encoding in _BY_DICTIONARY
            has_data = True
            values += page.values
            each_once &= page.encoding in _EACH_ONCE
            parts = max(parts, 0 if page.encoding in whole else page.size)
    return Chunk(size, largest, dictionary, begins_by_dictionary, values, each_once, parts)


def _pages(file: BinaryIO, at: int, end: int) -> Iterator[Page]:
    while at < end:
        page, header = _page(file, at, end)
        at += header + page.stored
        if at > end or page.size < 0 or page.stored < 0:
            raise Unreadable("damaged: a page of a column does not end within it")
        yield page


def _page(file: BinaryIO, at: int, end: int) -> tuple[Page, int]:
    """The page at a place, and how long its header is."""
    size = HEADER_BYTES
    while True:
        file.seek(at)
        held = file.read(min(size, end - at))
        try:
            fields, length = _struct(held, 0, 0)
        except IndexError:
            if len(held) < size or size >= MOST_HEADER_BYTES:
                break
            size *= 16
            continue
        kind, whole, stored = (fields.get(number) for number in (1, 2, 3))
        if not (isinstance(kind, int) and isinstance(whole, int) and isinstance(stored, int)):
            break
        if kind not in _OF_DATA:
            return Page(kind, whole, stored, 0, None), length
        own, count, encoding = _OF_DATA[kind]
        told = fields.get(own)
        values = told.get(count) if isinstance(told, dict) else None
        if not isinstance(told, dict) or not isinstance(values, int) or values < 0:
            break
        return Page(kind, whole, stored, values, told.get(encoding)), length
    raise Unreadable("damaged: a column has a page without a header")


# -- Thrift: numbers and structures; what else there is, is passed over ----------------------------


def _struct(held: bytes, at: int, depth: int) -> tuple[dict[int, object], int]:
    """The fields of a structure by their numbers, and where it ends. IndexError beyond the bytes.
    """
    if depth > MOST_NESTING:
        raise Unreadable("damaged: a header of a page is nested too deeply")
    fields: dict[int, object] = {}
    number = 0
    while True:
        mark = held[at]
        at += 1
        if not mark:
            return fields, at
        if mark >> 4:
            number += mark >> 4
        else:
            number, at = _number(held, at)
        fields[number], at = _value(held, at, mark & 15, depth)


def _value(held: bytes, at: int, kind: int, depth: int) -> tuple[object, int]:
    if kind in (1, 2):
        return kind == 1, at
    if kind == 3:
        return held[at], at + 1
    if kind in (4, 5, 6):
        return _number(held, at)
    if kind == 7:
        return None, _within(held, at + 8)
    if kind == 8:
        size, at = _whole(held, at)
        return None, _within(held, at + size)
    if kind in (9, 10):
        return None, _after_list(held, at, depth)
    if kind == 12:
        return _struct(held, at, depth + 1)
    raise Unreadable("damaged: a header of a page has a field of no known kind")


def _after_list(held: bytes, at: int, depth: int) -> int:
    mark = held[at]
    size, at = (mark >> 4, at + 1) if mark >> 4 < 15 else _whole(held, at + 1)
    _within(held, at + size)  # each takes a byte at least
    for _ in range(size):
        one = mark & 15
        _, at = (None, at + 1) if one in (1, 2) else _value(held, at, one, depth + 1)
    return _within(held, at)


def _within(held: bytes, at: int) -> int:
    if at > len(held):
        raise IndexError
    return at


def _whole(held: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first."""
    found = 0
    for place in range(10):
        one = held[at + place]
        found |= (one & 127) << 7 * place
        if one < 128:
            return found, at + place + 1
    raise Unreadable("damaged: a number of a header has no end")


def _number(held: bytes, at: int) -> tuple[int, int]:
    """A number with its sign in the lowest bit."""
    found, at = _whole(held, at)
    return (found >> 1) ^ -(found & 1), at
