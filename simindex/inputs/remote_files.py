"""Files of other systems, by their addresses, through fsspec.

    s3://bucket/crawl/*.warc.gz     https://example.org/texts.jsonl.zst     memory://a.txt

They are read in parts as they are needed, and never copied as a whole. What such a system raises is
of any type: here it becomes `RemoteError`, an OSError that the callers translate as that of a file.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from simindex.errors import MissingExtra, SimindexError
from simindex.inputs.extras import needed
from simindex.inputs.first_reads import first_read

_ADDRESS = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*::)*[A-Za-z][A-Za-z0-9+.-]*://")

_PATTERN = re.compile(r"[*\[]")
"""In an address a question mark may begin a query, in which stars are no patterns."""

CHECK_ADDRESS = "check the address, and that you may read it"

GONE = (404, 410)
"""Answers of a web server that has no such file."""

_PACKAGES = {"aiohttp": "", "smbclient": "smbprotocol", "libarchive": "libarchive-c"}
"""Packages by modules that have other names, or are in the extra."""

PART_BYTES = 1 << 20
"""Asked for at once."""


class RemoteError(OSError):
    """Another system did not give what it was asked for; the message says what it said."""


def is_remote(path: str) -> bool:
    """Whether a path is the address of a file of another system."""
    return _ADDRESS.match(path) is not None


def is_pattern(path: str) -> bool:
    """Whether an address may stand for several."""
    return _PATTERN.search(file_name(path)) is not None


def file_name(path: str) -> str:
    """An address without what may follow the name of its file."""
    if not is_remote(path):
        return path
    own = _parts(path)[1]
    return urlsplit(own).path if _is_http(own) else own


def exists(path: str) -> bool:
    """Whether there is a file or folder. RemoteError where a web server does not tell."""
    with _asked(path) as (files, there):
        if files.exists(there):
            return True
        if _is_http(path):  # fsspec says no also of a server that it cannot reach
            try:
                files.info(there)
            except FileNotFoundError as error:
                reason = error.__cause__
                if isinstance(reason, Exception) and getattr(reason, "status", 0) not in GONE:
                    raise reason from None
        return False


def is_folder(path: str) -> bool:
    """Whether there is a folder. A web server has none: its listings are pages."""
    if _is_http(path):
        return False
    with _asked(path) as (files, there):
        return bool(files.isdir(there))


def size_bytes(path: str) -> int | None:
    """Of a file; None where the system does not say."""
    with _asked(path) as (files, there):
        size = files.size(there)
    return None if size is None else int(size)


def matching(pattern: str) -> list[str]:
    """The addresses of all files and folders that match, sorted."""
    with _asked(pattern) as (files, there):
        before, _, behind = _parts(pattern)
        found = (str(files.unstrip_protocol(one)) for one in files.glob(there))
        return sorted(f"{before}{one}{behind}" for one in found)


def below(folder: str) -> Iterator[str]:
    """Paths of all files below a folder, relative to it, sorted."""
    with _asked(folder) as (files, there):
        root = there.rstrip("/") + "/"
        yield from sorted(one.removeprefix(root) for one in files.find(there))


def inside(folder: str, path: str) -> str:
    """The address of a file below a folder."""
    before, own, behind = _parts(folder)
    kind, mark, place = own.partition("://")
    above = place.rstrip("/") + "/" if place.strip("/") else place[:1]
    return f"{before}{kind}{mark}{above}{path}{behind}"


def _parts(path: str) -> tuple[str, str, str]:
    """The address in an address, and what it goes through: caches in front, an archive behind."""
    steps = path.split("::")
    at = next(at for at, step in enumerate(steps) if "://" in step)
    return (
        "".join(f"{step}::" for step in steps[:at]), steps[at],
        "".join(f"::{step}" for step in steps[at + 1 :]),
    )


class RemoteFile(io.RawIOBase):
    """A file as it is read. `read` is told how many bytes were."""

    def __init__(self, path: str, read: Callable[[int], None] | None) -> None:
        super().__init__()
        self._path, self._read = path, read or (lambda size: None)
        self._streamed = _is_http(path)
        """Whether it is one answer of a web server, many of which give no parts of files."""
        self._open()
        self._size: int | None = getattr(self._file, "size", None)
        self._first = True

    def _open(self) -> None:
        with _asked(self._path) as (files, there):
            self._files = files  # one of an archive closes it when it is dropped
            self._file: Any = files.open(
                there, "rb", block_size=0 if self._streamed else PART_BYTES
            )

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._file.seekable())

    def tell(self) -> int:
        return int(self._file.tell())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if self._streamed:
            self._file.close()
            self._streamed = False
            self._open()
        with _translated(self._path):
            return int(self._file.seek(offset, whence))

    def readinto(self, buffer: Any) -> int:
        size = first_read(self._some, buffer) if self._first else self._some(buffer)
        self._first = False
        return size

    def _some(self, buffer: Any) -> int:
        with _translated(self._path):
            data: bytes = self._file.read(len(buffer))
        if not data and self._size is not None and (at := self._file.tell()) < self._size:
            raise RemoteError(f"it ended after {at:,} of {self._size:,} bytes")
        buffer[: len(data)] = data
        self._read(len(data))
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _is_http(path: str) -> bool:
    return path.lower().startswith(("http://", "https://"))


@contextmanager
def _asked(path: str) -> Iterator[tuple[Any, str]]:
    """The system of an address, and the path there."""
    kind = path.partition("://")[0]
    use = f"reading {kind}:// addresses"
    with needed(use, extra="remote"):
        import fsspec
    try:
        with _translated(path):
            files, there = fsspec.core.url_to_fs(path)
    except ImportError as error:
        module = getattr(error.__cause__, "name", None) or error.name or ""
        package = _PACKAGES.get(module, module)
        raise MissingExtra(
            f"{use} needs an optional package ({error})",
            remedy=f"pip install 'simindex[remote]' {package}".rstrip(), extra="remote",
        ) from error
    with _translated(path):
        yield files, there


@contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except (SimindexError, ImportError, RemoteError):
        raise
    except FileNotFoundError as error:
        raise RemoteError("no such file or folder") from error
    except Exception as error:  # each system has errors of its own
        said = " ".join(str(error).split())[:300]
        name = type(error).__name__
        raise RemoteError(f"{name}: {said}" if said else name) from error
