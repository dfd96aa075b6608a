"""FORMAT: the file that says "this is an index", and in which version of the format.

    64 bytes, FORMAT_DTYPE: magic, byte order, version, features, uuid; in its last 4 the CRC-32C
    of the 60 before. It is the last file that `create` writes.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import numpy as np

from simindex._kernels import _native
from simindex.errors import CorruptFile, FormatTooNew, FormatTooOld, IndexNotFound
from simindex.storage.files.descriptor import NOT_REGULAR, PLAIN, Descriptor
from simindex.storage.files.durable import NewFile, sync_directory
from simindex.storage.files.file_names import TEMPORARY, TEMPORARY_PREFIX
from simindex.storage.files.published import FOLDER, MAP
from simindex.storage.files.removal import remove

MAJOR, MINOR = 1, 0
"""Version of everything on disk. Another major is refused; a newer minor is read."""

ENDIAN_TAG = 0x01020304
SWAPPED_TAG = int.from_bytes(ENDIAN_TAG.to_bytes(4, "big"), "little")

FORMAT_DTYPE = np.dtype(
    [
        ("magic", "S8"),
        ("endian", "<u4"),
        ("major", "<u2"),
        ("minor", "<u2"),
        ("incompatible", "<u4"),
        ("read_compatible", "<u4"),
        ("compatible", "<u4"),
        ("uuid", "V16"),
        ("reserved", "V16"),
        ("checksum", "<u4"),
    ]
)
"""Frozen: a golden file holds these 64 bytes."""

FORMAT_MAGIC = b"\x89SIM\r\n\x1a\n"


def is_format(directory: Path) -> bool:
    """Whether there is a FORMAT that begins as one of this package."""
    try:
        file = Descriptor(directory / "FORMAT", PLAIN)
    except OSError:
        return False
    with file:
        try:
            return os.read(file.fileno(), len(FORMAT_MAGIC)) == FORMAT_MAGIC
        except IsADirectoryError:
            return False


def write_format(directory: Path, uuid: bytes) -> None:
    """Writes FORMAT, the last step of creating an index."""
    record = np.zeros((), FORMAT_DTYPE)
    record["magic"], record["endian"] = FORMAT_MAGIC, ENDIAN_TAG
    record["major"], record["minor"] = MAJOR, MINOR
    record["uuid"] = np.void(uuid)
    data = np.frombuffer(record.tobytes(), np.uint8).copy()
    data[-4:] = np.frombuffer(np.uint32(_native.crc32c(data[:-4])).tobytes(), np.uint8)

    def verify(fd: int) -> None:
        if os.pread(fd, len(data), 0) != data.tobytes():
            raise CorruptFile(
                "FORMAT reads back differently than it was written", path=str(directory)
            )

    for stray in directory.glob(f"{TEMPORARY_PREFIX}*"):  # of one that was interrupted
        if TEMPORARY.fullmatch(stray.name):
            remove(stray)
    with NewFile(directory) as file:
        file.write(data, 0)
        file.publish("FORMAT", verify)
    sync_directory(directory.parent)


def read_format(directory: Path, *, writable: bool = False) -> bytes:
    """The index's uuid (16 bytes), once its version is known to be readable, or `writable`, too.

    Raises
    ------
    IndexNotFound
        If there is no FORMAT: the directory is not an index.
    CorruptFile, FormatTooNew, FormatTooOld
        If it is damaged, or of a version this package does not read.
    """
    path = directory / "FORMAT"
    try:
        file = Descriptor(path, PLAIN)
    except OSError as error:
        if error.errno in NOT_REGULAR:
            what = "a symbolic link" if path.is_symlink() else "no regular file"
            raise CorruptFile(f"{path} is {what}", path=str(path)) from error
        if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
            raise
        if any((directory / "segments").glob("*.rows")):
            raise IndexNotFound(
                f"{directory} has no FORMAT file",
                remedy=f"`simindex repair {directory}` writes it again",
                path=str(directory),
            ) from error
        what = f"there is no index at {directory}"
        remedy = "create one with mode 'c' or `simindex build`"
        with suppress(OSError, StopIteration):
            what += f", which holds {next(directory.iterdir()).name!r}"
            remedy = "name the folder of an index"
            if (directory / MAP).is_file():
                remedy = (
                    "it is a collection of shards: use `simindex ray`, or name the folder of one "
                    f"shard in {directory / FOLDER}"
                )
        raise IndexNotFound(what, remedy=remedy, path=str(directory)) from error
    with file:
        try:
            data = os.read(file.fileno(), FORMAT_DTYPE.itemsize + 1)
        except IsADirectoryError as error:
            raise CorruptFile(f"{path} is a directory", path=str(path)) from error
    if data[:8] != FORMAT_MAGIC:
        raise CorruptFile(f"{path} is not a FORMAT file of simindex", path=str(path), offset=0)
    if len(data) != FORMAT_DTYPE.itemsize:
        raise CorruptFile(
            f"{path} has {len(data)} bytes, not {FORMAT_DTYPE.itemsize}",
            path=str(path), found=len(data), expected=FORMAT_DTYPE.itemsize,
        )
    record = np.frombuffer(data, FORMAT_DTYPE)[0]
    if int(record["endian"]) == SWAPPED_TAG:
        raise CorruptFile(
            f"{path} has another byte order: an index is little-endian on every "
            "machine", path=str(path), offset=8,
        )
    check_version(path, int(record["major"]), int(record["minor"]), int(record["incompatible"]))
    found = _native.crc32c(np.frombuffer(data[:-4], np.uint8))
    if found != int(record["checksum"]) or int(record["endian"]) != ENDIAN_TAG:
        raise CorruptFile(f"{path} is damaged: its checksum differs", path=str(path))
    if writable:
        check_features(path, int(record["read_compatible"]))
    return bytes(record["uuid"])


def format_agrees(directory: Path) -> bool:
    """Whether FORMAT's checksum holds, or it is of a length that no version known here writes."""
    with Descriptor(directory / "FORMAT", PLAIN) as file:
        data = os.read(file.fileno(), FORMAT_DTYPE.itemsize + 1)
    if len(data) != FORMAT_DTYPE.itemsize:
        return True
    return _native.crc32c(np.frombuffer(data[:-4], np.uint8)) == int.from_bytes(
        data[-4:], "little"
    )


def check_version(path: Path, major: int, minor: int, incompatible: int) -> None:
    """Refuses what this version cannot read, and says what to do."""
    version = f"{major}.{minor}"
    if major > MAJOR or (major == MAJOR and incompatible):
        raise FormatTooNew(
            f"{path} has format {version}, this version of simindex reads up to {MAJOR}.{MINOR}",
            remedy="install a newer simindex",
            path=str(path), found=version, expected=f"{MAJOR}.{MINOR}",
        )
    if major < MAJOR:
        raise FormatTooOld(
            f"{path} has format {version}, this version of simindex reads {MAJOR}.x",
            remedy="build the index again",
            path=str(path), found=version, expected=f"{MAJOR}.{MINOR}",
        )


def check_features(path: Path | str, read_compatible: int) -> None:
    """Refuses to write where there is what this version reads past: it would be lost."""
    if read_compatible:
        raise FormatTooNew(
            f"{path} has features ({read_compatible:#x}) that this version of simindex can read "
            "but not write",
            remedy="open the index with mode 'r', or install a newer simindex",
            path=str(path), found=read_compatible, expected=0,
        )
