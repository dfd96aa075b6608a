"""Where `dedup` writes: standard output, and the audit of what was dropped."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from simindex.cli.dedup.listing import Listing, listing


@contextmanager
def whole_writes() -> Iterator[BinaryIO]:
    """Standard output; where Python does not buffer it, a write may write a part only."""
    output = sys.stdout.buffer
    if isinstance(output, io.RawIOBase):
        with open(output.fileno(), "wb", closefd=False) as buffered:
            yield buffered
    else:
        yield output


@contextmanager
def audit_file(path: str | None, *, adding: bool) -> Iterator[Listing | None]:
    """The audit; what earlier runs through the same index dropped stays in it."""
    if path is None:
        yield None
        return
    with listing(Path(path), adding=adding) as opened:
        yield opened
