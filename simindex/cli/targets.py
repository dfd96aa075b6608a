"""Files of output that must not be something else: an input, an index, standard output."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from simindex.cli.shared_options import is_open_as
from simindex.errors import InvalidOption


def require_apart(
    option: str, path: str | None, inputs: tuple[str, ...], *indexes: str
) -> None:
    """InvalidOption where the file of an option would be written over, or into, something else."""
    if path is None:
        return
    file = Path(path)
    there = Path(os.path.realpath(file))
    other = None
    for name in inputs:
        if name == "-":
            if is_open_as(file, sys.stdin):
                other = "standard input"
        elif Path(os.path.realpath(name)) in there.parents or (
            file.exists() and file.samefile(name)
        ):
            other = f"the input {name}"
        elif Path(name).is_dir() and file.exists() and file.stat().st_nlink > 1:
            other = f"of two names, one of which may be in the input {name}"
    for index in indexes:
        if Path(os.path.realpath(index)) in (there, *there.parents):
            other = f"the index {index}"
    if is_open_as(file, sys.stdout):
        other = "standard output"
    if other is not None:
        raise InvalidOption(
            f"{option} {file} is {other}, or in it",
            remedy="name another file", option=option.lstrip("-"), path=str(file),
        )
