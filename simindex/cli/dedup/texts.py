"""Texts of documents that may have to be compared again, in a temporary file.

    file       name, text | name, text | ...       in the order in which they were kept
    memory     digest of a name, its place         16 bytes each, in sorted parts

`dedup` decides while it reads, and reads its inputs once: the texts of what it kept would have to
be looked for from the beginning again for each buffer. `clusters` reads the inputs for the
documents that are in doubt, and keeps their texts here. Memory holds one text at a time.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from simindex.bits.digests import blake2b
from simindex.cli.console import megabytes
from simindex.errors import InvalidOption

RECENT = 1 << 16
"""Places that wait to be sorted."""

_HEAD = struct.Struct("<II")
"""Bytes of the name and of the text."""


class KeptTexts(Mapping[Any, list[str]]):
    """Texts by name, of which one may have several; they go with the folder.

    Raises InvalidOption where the folder has no room.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = (folder / "texts").open("w+b")
        self._size = self._flushed = 0
        self._recent: dict[int, list[int]] = {}
        self._parts: list[tuple[Any, Any]] = []
        """(digests, places), sorted; each at least as large as the next."""

    def close(self) -> None:
        """Closes the file, whether or not the disk has room for what waits: nobody reads it."""
        with suppress(OSError):
            self._file.close()

    def keep(self, name: Any, text: str | bytes) -> None:
        """Adds a text of a document."""
        named, encoded = _encoded(name), _encoded(text)
        try:
            self._file.write(_HEAD.pack(len(named), len(encoded)) + named + encoded)
        except OSError as error:
            raise self._full(error) from error
        self._recent.setdefault(digest_of(named), []).append(self._size)
        self._size += _HEAD.size + len(named) + len(encoded)
        if len(self._recent) >= RECENT:
            self._sort()

    def __getitem__(self, name: Any) -> list[str]:
        named = _encoded(name)
        digest = digest_of(named)
        places = [*self._recent.get(digest, ())]
        for digests, held in self._parts:
            at = int(digests.searchsorted(np.uint64(digest)))
            while at < len(digests) and digests[at] == digest:
                places.append(int(held[at]))
                at += 1
        found = [text for text in map(self._read, sorted(places), [named] * len(places))
                 if text is not None]
        if not found:
            raise KeyError(name)
        return found

    def __len__(self) -> int:
        return sum(len(digests) for digests, _ in self._parts) + sum(
            map(len, self._recent.values())
        )

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("the names of kept texts are not listed")

    def _read(self, place: int, named: bytes) -> str | None:
        """The text at a place; None if it is that of another name."""
        if self._flushed < self._size:
            try:
                self._file.flush()
            except OSError as error:
                raise self._full(error) from error
            self._flushed = self._size
        number = self._file.fileno()
        names, size = _HEAD.unpack(os.pread(number, _HEAD.size, place))
        read = os.pread(number, names + size, place + _HEAD.size)
        if read[:names] != named:
            return None
        return read[names:].decode("utf-8", "surrogatepass")

    def _sort(self) -> None:
        pairs = [(digest, place) for digest, held in self._recent.items() for place in held]
        self._recent.clear()
        digests = np.array([digest for digest, _ in pairs], np.uint64)
        places = np.array([place for _, place in pairs], np.int64)
        while self._parts and len(self._parts[-1][0]) <= len(digests):
            more = self._parts.pop()
            digests, places = np.r_[more[0], digests], np.r_[more[1], places]
        order = np.argsort(digests, kind="stable")
        self._parts.append((digests[order], places[order]))

    def _full(self, error: OSError) -> InvalidOption:
        return InvalidOption(
            f"{self._folder.parent} has no room for the texts that --verify-text compares, after "
            f"{megabytes(self._size)} of them: {error.strerror}",
            remedy="name another folder with --temp-dir, or leave out --verify-text",
            option="temp_dir",
        )


def _encoded(name: Any) -> bytes:
    return name if isinstance(name, bytes) else str(name).encode("utf-8", "surrogatepass")


def digest_of(name: Any) -> int:
    """64 bits that stand for a name."""
    return int.from_bytes(blake2b(_encoded(name), digest_size=8).digest(), "little")
