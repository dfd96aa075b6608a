"""Numbers as people type them: 10M rows, 1e7 rows, 64G of memory, 30d of age."""

from __future__ import annotations

import re
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    _Whole = click.ParamType[int]
    _Number = click.ParamType[float]
else:
    _Whole = _Number = click.ParamType  # which is not a generic class in all versions

_COUNT = r"([0-9][0-9_,]*(?:\.[0-9]+)?(?:e\+?[0-9]{1,3})?)\s*([kmgbt])?"
_THOUSANDS = {"k": 1, "m": 2, "g": 3, "b": 3, "t": 4}

_SIZE = r"([0-9][0-9_,]*(?:\.[0-9]+)?)\s*(?:([kmgt])(i?b)?|b)?"
_POWER = {"k": 1, "m": 2, "g": 3, "t": 4}

_AGE = r"([0-9]{1,12}(?:\.[0-9]{1,9})?)\s*([smhdw])?"
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}

_ID = "[0-9]{1,20}"

MOST = 1 << 63
MOST_ID = (1 << 64) - 1
MOST_BYTES = 1 << 60
"""More than any machine has."""

UNITS = tuple((letter.upper(), 1024**power) for letter, power in reversed(_POWER.items()))
LEAST_UNITS = 10
"""A size of fewer is told in the next smaller unit, so that rounding adds a tenth at most."""


def _matched(pattern: str, typed: str) -> re.Match[str] | None:
    # A pattern is compiled for what is typed: most commands are given no number.
    return re.fullmatch(pattern, typed, re.ASCII | re.IGNORECASE)


class Count(_Whole):
    """How many, as a whole number: ``10000000``, ``10_000_000``, ``1e7`` or ``10M``."""

    name = "number"

    def __init__(
        self, least: int = 0, most: int = MOST, example: str = "5000, 10M or 1e7"
    ) -> None:
        self._least, self._most, self._example = least, most, example

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """The number; a wrong call where there is none, or one out of range."""
        if isinstance(value, int):
            return value
        from decimal import Decimal, InvalidOperation

        found = _matched(_COUNT, value.strip())
        try:
            number = None if found is None else Decimal(found[1].replace(",", ""))
        except InvalidOperation:
            number = None
        if found is not None and number is not None:
            number *= 1000 ** _THOUSANDS.get((found[2] or "").lower(), 0)
            if number == number.to_integral_value() and self._least <= number <= self._most:
                return int(number)
        bounds = f"{self._least:,} or more" if self._most == MOST else (
            f"{self._least:,} to {self._most:,}"
        )
        beyond = ", or too large" if number is not None and number > MOST else ""
        raise click.BadParameter(
            f"{value[:40]!r} is not a whole number of {bounds}{beyond}: give one like "
            f"{self._example}",
            ctx, param,
        )


def as_size(size_bytes: int) -> str:
    """The least size that people type and that holds so many bytes: ``1K``, ``80M``, ``1500M``."""
    for letter, unit in UNITS:
        if size_bytes and size_bytes % unit == 0:
            return f"{size_bytes // unit}{letter}"
        if size_bytes > LEAST_UNITS * unit:
            return f"{-(-size_bytes // unit)}{letter}"
    return str(size_bytes)


class _Real(_Number):
    """A number that need not be whole."""

    wanted: str
    """Which ones there may be, and one of them."""

    def fits(self, number: float) -> bool:
        """Whether it is one of those."""
        return number >= 0

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number; a wrong call where there is none, or another."""
        with suppress(ValueError):
            number = float(value)
            if self.fits(number):
                return number
        raise click.BadParameter(f"{value[:40]!r} is not {self.wanted}", ctx, param)


class Share(_Real):
    """A part of the whole, from 0 to 1; the command bounds it."""

    name = "share"
    wanted = "a number from 0 to 1: give one like 0.95"

    def fits(self, number: float) -> bool:
        """Any does here."""
        return True


class Price(_Real):
    """What something costs, in any currency."""

    name = "price"
    wanted = "a price of 0 or more: give one like 2.5"

    def fits(self, number: float) -> bool:
        """Those that have an end."""
        return 0 <= number < inf


class Seconds(_Real):
    """How long, or `inf` for without end."""

    name = "seconds"
    wanted = "a number of seconds of 0 or more: give one like 60, or inf"


class Id(_Whole):
    """An id of a row, any number of 64 bits."""

    name = "id"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """The id; a wrong call where there is none."""
        if isinstance(value, int):
            return value
        if not _matched(_ID, value) or int(value) > MOST_ID:
            raise click.BadParameter(
                f"{value[:40]!r} is not an id: give a whole number from 0 to {MOST_ID}, as "
                "`simindex export` prints them",
                ctx, param,
            )
        return int(value)


class Size(_Whole):
    """How many bytes: ``64G`` is 64 x 1024^3, ``64GB`` 64 x 1000^3."""

    name = "size"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """The bytes; a wrong call where there are none, or more than any machine has."""
        if isinstance(value, int):
            return value
        found = _matched(_SIZE, value.strip())
        if found is not None:
            base = 1000 if (found[3] or "").lower() == "b" else 1024
            number = float(re.sub("[,_]", "", found[1]))
            size = number * base ** _POWER.get((found[2] or "").lower(), 0)
            if size <= MOST_BYTES:
                return int(size)
        raise click.BadParameter(
            f"{value[:40]!r} is not a size, or one beyond all memory: give one like 64G, 512M or "
            "64GB",
            ctx, param,
        )


class Age(_Number):
    """How long ago, in seconds: ``30d``, ``12h``, ``2w``, ``90m``, ``45s`` or ``45``."""

    name = "age"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The seconds; a wrong call where there are none."""
        if isinstance(value, float):
            return value
        found = _matched(_AGE, value.strip())
        if found is None:
            raise click.BadParameter(
                f"{value[:40]!r} is not an age: give one like 30d, 12h, 2w, 90m or 45s", ctx, param
            )
        return float(found[1]) * _SECONDS[(found[2] or "s").lower()]
