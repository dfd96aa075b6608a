"""Where `dedup` writes: standard output, and the audit of what was dropped."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from simindex.cli.choices import is_open_as
from simindex.cli.dedup.listing import Listing, listing
from simindex.errors import InvalidOption


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


def require_apart(path: str | None, inputs: tuple[str, ...], index_path: str | None) -> None:
    """InvalidOption where the audit would be written over, or into, something else."""
    if path is None:
        return
    audit = Path(path)
    there = Path(os.path.realpath(audit))
    other = None
    for name in inputs:
        if name == "-":
            if is_open_as(audit, sys.stdin):
                other = "standard input"
        elif Path(os.path.realpath(name)) in there.parents or (
            audit.exists() and audit.samefile(name)
        ):
            other = f"the input {name}"
        elif Path(name).is_dir() and audit.exists() and audit.stat().st_nlink > 1:
            other = f"of two names, one of which may be in the input {name}"
    if index_path is not None and Path(os.path.realpath(index_path)) in (there, *there.parents):
        other = f"the index {index_path}"
    if is_open_as(audit, sys.stdout):
        other = "standard output"
    if other is not None:
        raise InvalidOption(
            f"--audit {audit} is {other}, or in it",
            remedy="name another file", option="audit", path=str(audit),
        )
