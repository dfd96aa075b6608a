"""Where `dedup` writes: standard output, and the audit of what was dropped."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from simindex.cli.dedup.audit_file import Audit, audit_typed, listing, table
from simindex.cli.dedup.marks import schema_of_audit
from simindex.cli.dedup.unbuffered_file import Unbuffered
from simindex.cli.results import load
from simindex.errors import InvalidOption
from simindex.outputs.formats import FORMATS, JSONL, Format, by_suffix


@contextmanager
def whole_writes() -> Iterator[BinaryIO]:
    """Standard output, see `Unbuffered`; or what stands for it, such as memory."""
    output = sys.stdout.buffer
    try:
        number = output.fileno()
    except io.UnsupportedOperation:
        yield output
        return
    output.flush()
    with Unbuffered(number, "wb", closefd=False) as whole:
        yield cast(BinaryIO, whole)


def audit_format(path: str | None, *, adding: bool) -> Format:
    """How the audit is written; InvalidOption where lines are to be added to what has none."""
    row = (path and by_suffix(path)) or FORMATS[JSONL]
    if adding and row.name != JSONL:
        raise InvalidOption(
            f"{audit_typed()} {path} is {row.name}, and each run with --index adds lines to the "
            "file, which only JSON lines allow", remedy="name a file that ends with .jsonl",
            option=audit_typed().lstrip("-"), path=path,
        )
    load(row)
    return row


@contextmanager
def audit_file(
    path: str | None, row: Format, *, adding: bool, verified: bool = False
) -> Iterator[Audit | None]:
    """The audit; what earlier runs through the same index dropped stays in it."""
    if path is None:
        yield None
    elif row.name == JSONL:
        with listing(Path(path), adding=adding) as lines:
            yield lines
    else:
        with table(Path(path), row, schema_of_audit(verified=verified)) as rows:
            yield rows
