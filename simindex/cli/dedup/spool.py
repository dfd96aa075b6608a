"""Standard input for `dedup`, where documents are ranked over all: a copy that is read twice.

The copy is in the folder of the temporary index, as large as the stream, compressed if that is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from simindex.cli.console import megabytes
from simindex.errors import InvalidOption
from simindex.inputs.reading import rereadable
from simindex.inputs.streams import STDIN

COPIED_BYTES = 1 << 20
"""At once."""


def decided_in_buffers(inputs: Sequence[str]) -> str | None:
    """Why documents of the inputs can only be ranked within buffers; None if over all."""
    if not rereadable([path for path in inputs if path != STDIN]):
        return "a named pipe is read once: pipe it to standard input instead"
    if STDIN not in inputs:
        return None
    if sys.stdin.isatty():
        return "the terminal is read once"
    source = click.get_current_context().get_parameter_source("buffer_documents")
    if source is ParameterSource.COMMANDLINE:
        return "--buffer is given; without it the stream is read to its end first"
    return None


def copied_stdin(folder: Path) -> Path:
    """Reads standard input to its end into a file of the folder; InvalidOption if that is full."""
    copy = folder / "stdin"
    copied = 0
    with copy.open("wb", buffering=0) as file:
        while data := sys.stdin.buffer.read(COPIED_BYTES):
            try:
                while data:
                    written = file.write(data)
                    data, copied = data[written:], copied + written
            except OSError as error:
                raise InvalidOption(
                    f"{folder.parent} has no room for a copy of standard input, after "
                    f"{megabytes(copied)} of it: {error.strerror}",
                    remedy="name another folder with --temp-dir, or decide within buffers, without "
                    "a copy, with --buffer N", option="temp_dir",
                ) from error
    return copy
