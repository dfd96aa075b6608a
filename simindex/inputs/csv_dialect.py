r"""How a table is written: what stands between cells and around them, told by its first rows.

    1,"say ""a"" now"      quotes that are doubled within quotes: the usual way
    1,"say \"a\" now"      a backslash before them
    1,'say "a" now'        other quotes
    1<tab>"a" say          none: a quote is a character like any other

The usual way counts unless its rows are broken, or have other numbers of cells than the header, and
another way has a tenth of these at most. Other quotes must be in the header, and only tables with
tabs do without. There a row can look like the beginning of a cell of many lines: such a cell is
believed only if the lines in it are not rows.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

SEPARATORS = (",", "\t", ";", "|")

FEW = 10
"""A dialect is better if it has so many times fewer bad rows."""

AHEAD_BYTES = 1 << 16
"""So much of a file is looked at."""

ROWS_TOLD = 16
"""So many rows tell whether a line is the first one of a row: hardly any may be bad."""

RETURN = "\ud800"
"""Stands for a carriage return within a line: half of a surrogate pair, which no UTF-8 has."""


class Dialect(NamedTuple):
    """What stands between cells, around them, and before a quote within them; None for nothing."""

    separator: str
    quote: str | None = '"'
    escape: str | None = None

    def may_be(self, lines: Iterable[str], header: str) -> bool:
        """Whether a table shows what is unusual in it."""
        if self.quote is None:
            return self.separator == "\t" and "\t" in header
        if self.escape is not None:
            return any(self.escape + self.quote in line for line in lines)
        return self.quote in header

    def rows(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """Rows of cells; raises csv.Error for a row that is not written so, and goes on."""
        how: dict[str, Any] = {"delimiter": self.separator, "strict": True}
        if self.quote is None:
            return csv.reader(lines, quoting=csv.QUOTE_NONE, **how)
        return csv.reader(lines, quotechar=self.quote, escapechar=self.escape, **how)

    def are_rows(self, lines: Iterable[str], columns: int, most: int = ROWS_TOLD) -> bool:
        """Whether rows of so many cells begin with the first line, by `most` rows from there.

        Of seven rows at most one may be bad, and the last one may be cut.
        """
        good = bad = 0
        ended = False

        def counted() -> Iterator[str]:
            nonlocal ended
            yield from lines
            ended = True

        rows = self.rows(counted())
        while good + bad < most and 7 * bad <= most:
            try:
                row = next(rows)
            except StopIteration:
                break
            except csv.Error:
                bad += not ended
                continue
            good += len(row) == columns
            bad += len(row) not in (0, columns)
        return good > 7 * bad


def without_returns(line: str) -> str:
    """A line with RETURN for each carriage return that does not end it.

    The csv module refuses these outside of quotes, where pandas and others write them.
    """
    held = line.rstrip("\r\n")
    return line if "\r" not in held else held.replace("\r", RETURN) + line[len(held) :]


class _Judgement(NamedTuple):
    """What speaks against a dialect."""

    lacks: bool
    """Whether the header has no column of the name."""
    bad: int
    """Rows that are broken, or have another number of cells than the header."""
    long: int
    """Rows of several lines."""

    def is_better(self, other: _Judgement, *, bare: bool) -> bool:
        """Whether it speaks for a dialect in place of another; `bare` of one without quotes."""
        if self.lacks != other.lacks:
            return other.lacks
        if other.bad:
            return self.bad <= other.bad // FEW
        return bare and not self.bad and other.long > 0


def dialect_of(lines: Sequence[str], path: str, needed: str, *, cut: bool) -> Dialect:
    """The dialect of a table that begins with some lines.

    Parameters
    ----------
    lines : sequence of str
        With their ends.
    path : str
        Tabs are usual in a `.tsv`.
    needed : str
        A column that the header should have.
    cut : bool
        Whether more lines follow.
    """
    usual = "\t" if ".tsv" in PurePath(path).suffixes else ","
    header = next((line for line in lines if line.strip()), "")
    best = Dialect(_separator(header, usual, needed, '"'))
    found = _judged(best, lines, needed, cut=cut)
    for quote, escape in (('"', "\\"), ("'", None), (None, None)):
        if found == (False, 0, 0):
            break
        other = Dialect(_separator(header, usual, needed, quote, escape), quote, escape)
        if other.may_be(lines, header):
            judged = _judged(other, lines, needed, cut=cut)
            if judged.is_better(found, bare=quote is None):
                best, found = other, judged
    return best


def _judged(dialect: Dialect, lines: Sequence[str], needed: str, *, cut: bool) -> _Judgement:
    taken, ended = 0, False

    def counted() -> Iterator[str]:
        nonlocal taken, ended
        for line in lines:
            taken += 1
            yield line
        ended = True

    rows = dialect.rows(counted())
    header: list[str] | None = None
    bad = long = 0
    while True:
        before = taken
        try:
            row = next(rows)
        except StopIteration:
            break
        except csv.Error:
            # The last row may go on.
            bad += not (cut and ended)
            continue
        if header is None:
            header = row or None
            continue
        bad += bool(row) and len(row) != len(header)
        long += taken > before + 1
    return _Judgement(header is None or needed not in header, bad, long)


def _separator(
    header: str, usual: str, needed: str, quote: str | None, escape: str | None = None
) -> str:
    """What stands between the columns of a header: what finds the needed one, else most columns."""
    line = header.rstrip("\r\n")
    found: dict[str, list[str]] = {}
    for mark in (usual, *SEPARATORS):
        try:
            found[mark] = next(Dialect(mark, quote, escape).rows([line]), [])
        except csv.Error:
            continue
    return max(found, key=lambda mark: (needed in found[mark], len(found[mark])), default=usual)
