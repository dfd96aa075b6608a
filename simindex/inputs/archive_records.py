"""Records of web archives: what a reader of WARC or ARC finds, and how it goes on after damage.

fastwarc and warcio read the records. They believe every length, fill in what cut headers lack, and
pass over bytes between records without a word. So what they say of a record is compared with the
bytes where it stands (`Window`): it begins where the one before it ended, its headers end, and the
next record follows its block.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from simindex.inputs.document import Source, Unusable
from simindex.inputs.fed_window import Window
from simindex.inputs.foreign_formats import looks_like
from simindex.inputs.http_body import media_type_of

URI, RECORD_ID = "WARC-Target-URI", "WARC-Record-ID"
"""Headers that name a record: the first by default."""

DOCUMENTS = ("response", "resource", "conversion")
"""Kinds of records that may be documents."""

_LENGTH = re.compile("[0-9]{1,18}")

LOOKED_AT_BYTES = 1 << 16
"""Of a file that begins with no record: where none begins in so many bytes, it is no archive."""


MOST_LOOKS = 8
"""Times that the bytes of an archive are searched for records in blocks, on average."""


class Record(NamedTuple):
    """What a web server, or another source, gave."""

    at: int
    """Where it begins, in the decompressed archive."""
    kind: str
    headers: dict[str, str]
    """Of the archive, with their usual names."""
    media_type: str
    """In lower case; may be empty."""
    charset: str | None = None
    status: int | None = None
    """Of HTTP; None where nobody was asked."""
    announced_bytes: int | None = None
    """Of the body, as the server announced it; None where it did not say, or the body may have been
    stored in another form."""
    transfer: str = ""
    """How the body is encoded on the way, and `encoding` of what it is."""
    encoding: str = ""
    body: bytes = b""
    """As it was stored; a part of it if it is longer than the limit."""
    long: bool = False
    """Whether it is."""

    @property
    def cut(self) -> bool:
        """Whether the archive says that it holds the start of the body only."""
        return "WARC-Truncated" in self.headers

    @property
    def is_short(self) -> bool:
        """Whether the body has fewer bytes than the server announced."""
        return self.announced_bytes is not None and len(self.body) < self.announced_bytes


def of_http(
    at: int, kind: str, headers: dict[str, str], http: Iterable[tuple[str, str]],
    status: int | None, body: bytes, *, long: bool,
) -> Record:
    """A record of an answer of HTTP with these headers, each of which may come several times."""
    found: dict[str, list[str]] = {}
    for name, value in http:
        found.setdefault(name.strip().lower(), []).append(value.strip())
    transfer = ",".join(found.get("transfer-encoding", ())).lower()
    encoding = ",".join(found.get("content-encoding", ())).lower()
    lengths = {*found.get("content-length", ())}
    length = lengths.pop() if len(lengths) == 1 and not transfer and not encoding else ""
    return Record(
        at, kind, headers, *media_type_of(found.get("content-type", [""])[0]), status=status,
        announced_bytes=int(length) if _LENGTH.fullmatch(length) else None,
        transfer=transfer, encoding=encoding, body=body, long=long,
    )


class Damaged(Unusable):
    """A record whose end is not known; reading goes on where the next one begins."""


class Records:
    """Records of an archive; `number` is that of the last one, from 1.

    1. Each record is yielded, or a bad record. 2. So is each stretch of bytes that is no record.
    3. After damage the next record is looked for from where the block of the damaged one began.
    """

    what = "an archive"
    start: re.Pattern[bytes] = re.compile(b"()")
    """Finds a record, which is its first group. `reach` is the most bytes that it looks at."""
    before = b""
    """What it needs in front of a record."""
    reach = 1

    def __init__(self, window: Window, source: Source) -> None:
        self._window, self._source = window, source
        self.number: int = 0
        self._looked = 0
        self._block_at = 0
        """Where the block of the last record begins, or what comes next if none did."""

    def __iter__(self) -> Iterator[Record]:
        window = self._window
        if not self._is_archive():
            return
        at, told = 0, False
        while True:
            self.number += 1
            at = self._record_at(at)
            if window.ended and at >= window.end:
                if window.error is None or told:
                    return
                told = not self._broken(at)
                continue
            begin = self._block_at = window.keep = at
            try:
                found, at = self._read(begin)
            except Damaged as reason:
                at = window.seek(
                    self.start, max(begin + 1, self._block_at), len(self.before), self.reach
                )
                if window.error is not None and not told and at >= window.end:
                    told = not self._broken(begin)  # which is why the record is damaged
                else:
                    self._bad(reason, begin)
                continue
            if isinstance(found, Unusable):
                self._bad(found, begin)
            else:
                yield found

    def _may_look(self, size: int) -> bool:
        """Whether so many bytes may be searched for records, which then counts.

        Records that each reach over all others would take time with the square of their number.
        """
        self._looked += size
        return self._looked <= MOST_LOOKS * self._window.end

    def _bad(self, reason: Unusable | Damaged, at: int) -> None:
        """Notes that the last record, which began there, is a bad one."""
        self._source.intake.bad(
            self._source.path, self.number, f"{reason} (at byte {at})", reason.remedy
        )

    def _broken(self, at: int) -> bool:
        """Notes that the stream broke off in the record there, and whether it goes on behind it."""
        window = self._window
        error, place = window.error, window.resume(self._begins)
        window.rewind(window.end)  # where the member comes that it goes on with
        if place is None:
            how = "so the rest of the file was not read"
        else:
            how = f"and reading goes on at compressed byte {place:,}"
        remedy = None if error is None else error.remedy
        self._bad(Unusable(f"{error}, {how}", remedy), at)
        return place is not None

    def _begins(self, data: bytes) -> bool:
        return self.start.match(self.before + data) is not None

    def _is_archive(self) -> bool:
        """Whether a record begins near the start; else the file is a bad record."""
        window = self._window
        head = window.look(0, LOOKED_AT_BYTES)
        if not head or window.error is not None or self.start.search(self.before + head):
            return True
        self._source.intake.bad(
            self._source.path, None, f"not {self.what}: it looks like {looks_like(head)}",
            "name the format with --format, or leave the file out",
        )
        return False

    def _require_http(self, status: int, block_at: int, body_at: int, body: bytes) -> None:
        """Unusable for headers of HTTP that have no status, or that no empty line ends."""
        if not 100 <= status < 1000:
            raise Unusable("damaged headers of HTTP: no status")
        before = max(block_at, body_at - 3)
        end = self._window.look(before, body_at - before) if before >= self._window.start else b""
        if not end.endswith((b"\n\r\n", b"\n\n")) and (body or not end.endswith(b"\n")):
            raise Unusable("damaged headers of HTTP: no empty line ends them")

    def _record_at(self, at: int) -> int:
        """Where the next record begins, if the one before it ends there."""
        return at

    def _read(self, at: int) -> tuple[Record | Unusable, int]:
        """The record there, or what makes it unusable, and where it ends; or raises Damaged."""
        raise NotImplementedError
