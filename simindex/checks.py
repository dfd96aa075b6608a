"""What arguments may be: whole numbers that are not truth values, and values of one condition."""

from __future__ import annotations

from contextlib import suppress
from math import inf
from operator import index
from typing import Any, TypeGuard

from simindex.errors import InvalidOption


def is_int(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number of Python, and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_whole(value: object) -> TypeGuard[int]:
    """The same, also of numpy."""
    import numpy as np

    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def whole(value: object) -> int | None:
    """The number, of whatever type has an `__index__`; None for truth values and all else."""
    import numpy as np

    number: Any = value
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return index(number)
    except TypeError:
        return None


def plain_truth(value: object) -> object:
    """Python's truth value for one of numpy; all else as it is."""
    if value is None or isinstance(value, bool | str):
        return value
    import numpy as np

    return bool(value) if isinstance(value, np.bool_) else value


def is_seconds(value: object) -> TypeGuard[float]:
    """Whether a caller gave a time from 0 on, in seconds, as a number of Python or numpy."""
    import numpy as np

    numbers = int, float, np.integer, np.floating
    return isinstance(value, numbers) and not isinstance(value, bool) and bool(value >= 0)


def require(held: bool, option: str, found: object, expected: str) -> None:
    """Raises InvalidOption, naming the option, what was found and what to give, unless `held`."""
    if not held:
        raise InvalidOption(
            f"option {option}={found!r} is not valid",
            remedy=f"give {expected}", option=option, found=found, expected=expected,
        )


def require_seconds(value: object, option: str, expected: str = "seconds, 0 or more") -> float:
    """The time from 0 on, of numpy or not, as Python's number, endless if it is too large for one;
    raises InvalidOption on another."""
    require(is_seconds(value), option, value, expected)
    number: Any = value
    try:
        return float(number)
    except OverflowError:
        return inf


def require_whole(value: object, option: str, least: int, most: int | None = None) -> int:
    """The whole number, of numpy or not, as Python's; raises InvalidOption unless within bounds."""
    if not is_whole(value) or value < least or (most is not None and value > most):
        expected = f"from {least}" + ("" if most is None else f" to {most}")
        raise InvalidOption(
            f"{option}={value!r} is not valid",
            remedy=f"give a whole number {expected}", option=option, found=value, expected=expected,
        )
    return int(value)


def require_distance(h: object, bits: int) -> int:
    """The distance of fingerprints of so many bits, of numpy or not, as Python's number; raises
    InvalidOption on another."""
    if not is_whole(h) or not 0 <= h <= bits:
        raise InvalidOption(
            f"h={h!r} is not a valid distance",
            remedy=f"give a whole number from 0 to {bits}", option="h", found=h,
        )
    return int(h)


def require_share(value: object, option: str) -> float:
    """The number above 0 and at most 1, of Python or numpy; raises InvalidOption on another."""
    import numpy as np

    number: Any = value
    share = 0.0
    none = isinstance(value, bool | np.bool_ | complex) or getattr(value, "ndim", 0) > 0
    if hasattr(value, "__float__") and not none:
        with suppress(TypeError, ValueError, OverflowError):
            share = float(number)
    if not 0 < share <= 1:
        raise InvalidOption(
            f"{option}={value!r} is not a share", remedy="give a number above 0 and up to 1",
            option=option, found=value,
        )
    return share
