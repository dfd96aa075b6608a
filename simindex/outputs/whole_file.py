"""A file that gets its name once it is complete.

    pairs.parquet             the old file, or none; the new one after a clean exit
    .simindex-XXXXXXXX.part   the new one while it is written

1. Whatever ends the run, FILE is the old one or all of the new one. 2. Only a kill leaves the other
name. 3. A device or a named pipe is written to directly.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from simindex.errors import InvalidOption


@contextmanager
def whole_file(path: Path, option: str) -> Iterator[BinaryIO]:
    """The file to write, which takes the name `path` on a clean exit and goes on an exception.

    It gets the permissions of the file that it replaces; a link stays, and leads to it. Raises
    InvalidOption, which names the option, where no file can be made.
    """
    place = Path(os.path.realpath(path))
    partial = place.with_name(f".simindex-{os.urandom(4).hex()}.part")
    try:
        try:
            mode = _replaced_mode(place)
            direct = mode is not None and not stat.S_ISREG(mode)
            opened = _NamedFile(place, "wb") if direct else _NamedFile(partial, "xb")
        except OSError as error:
            raise InvalidOption(
                f"{option} {path} cannot be written: {error.strerror}",
                remedy="name a file in a folder that exists and can be written to",
                option=option.lstrip("-"), path=str(path),
            ) from error
        opened.told = str(path)
        with io.BufferedWriter(opened) as file:
            yield file
            file.flush()
            if direct:
                return
            if mode is not None:
                partial.chmod(stat.S_IMODE(mode))
            os.fsync(file.fileno())
        partial.replace(place)
    finally:
        with suppress(OSError):
            partial.unlink()


@contextmanager
def whole_text_file(path: Path, option: str) -> Iterator[TextIO]:
    """The same for text, in UTF-8."""
    with whole_file(path, option) as file:
        stream = io.TextIOWrapper(file, encoding="utf-8", newline="")
        try:
            yield stream
        finally:
            stream.detach()


class _NamedFile(io.FileIO):
    """A file whose errors name it as it was `told`."""

    told: str

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = self.told
            raise


def _replaced_mode(place: Path) -> int | None:
    """The mode of what is there, if it may be replaced; None if nothing is."""
    try:
        mode = place.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(None, "it is a folder")
    if not os.access(place, os.W_OK):
        raise PermissionError(None, "it is read-only")
    return mode
