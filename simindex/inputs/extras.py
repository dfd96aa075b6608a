"""Packages that some formats need, and that are installed by extras."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from simindex.errors import MissingExtra


@contextmanager
def needed(use: str, *, extra: str, otherwise: str = "") -> Iterator[None]:
    """Has a failing import in the block raised as MissingExtra, which says how to get the package.

    `otherwise` is added to the remedy.
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtra(
            f"{use} needs an optional package ({error})",
            remedy=f"pip install 'simindex[{extra}]'{otherwise}", extra=extra,
        ) from error
