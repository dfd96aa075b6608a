"""What every Python target is made of, and one judged execution."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from simindex.errors import SimindexError


@dataclass(frozen=True)
class Target:
    """Bytes in, an answer or a typed error out."""

    what: str
    seeds: Callable[[], list[bytes]]
    """Small whole files, made when asked for."""
    execute: Callable[[bytes], None]
    repair: Callable[[bytes], bytes] | None = None
    """Makes the checksums of any bytes hold, so that what lies behind them is reached."""


def attempt(target: Target, data: bytes) -> tuple[int, int]:
    """Executes the bytes as they are, and once more with checksums repaired if that makes others.

    Returns how often, and how many of these no checksum stopped. What is raised is a fault:
    anything but an error of the package.
    """
    tried = [data]
    if target.repair is not None and (repaired := target.repair(data)) != data:
        tried.append(repaired)
    for some in tried:
        with suppress(SimindexError):
            target.execute(some)
    return len(tried), int(target.repair is not None)


@cache
def workplace() -> Path:
    """A directory of this process, in memory where there is room for that."""
    shared = Path("/dev/shm")  # noqa: S108
    root = shared if os.access(shared, os.W_OK) else None
    made = tempfile.TemporaryDirectory(prefix="simindex-fuzz-", dir=root)
    _kept.append(made)
    return Path(made.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []
