"""What arguments may be: whole numbers that are no truth values, and values of one condition."""

from __future__ import annotations

from typing import TypeGuard

import numpy as np

from simindex.errors import InvalidOption


def is_int(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number of Python, and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_whole(value: object) -> TypeGuard[int]:
    """The same, also of numpy."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def require(held: bool, option: str, found: object, expected: str) -> None:
    """Raises InvalidOption, naming the option, what was found and what to give, unless `held`."""
    if not held:
        raise InvalidOption(
            f"option {option}={found!r} is not valid",
            remedy=f"give {expected}", option=option, found=found, expected=expected,
        )


def require_whole(value: object, option: str, least: int, most: int | None = None) -> None:
    """Raises InvalidOption unless a value is a whole number, of numpy or not, within bounds."""
    if not is_whole(value) or value < least or (most is not None and value > most):
        expected = f"from {least}" + ("" if most is None else f" to {most}")
        raise InvalidOption(
            f"{option}={value!r}",
            remedy=f"give a whole number {expected}", option=option, found=value, expected=expected,
        )


def require_distance(h: object, bits: int) -> None:
    """Raises InvalidOption unless `h` is a distance of fingerprints of so many bits."""
    if not is_int(h) or not 0 <= h <= bits:
        raise InvalidOption(
            f"h={h!r} is not a distance",
            remedy=f"give a whole number from 0 to {bits}", option="h", found=h,
        )
