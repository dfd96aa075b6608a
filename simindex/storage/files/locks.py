"""Locks: the writer's LOCK, whose text names who holds it, and holds on directories."""

from __future__ import annotations

import fcntl
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from simindex.errors import CorruptFile, IndexLocked
from simindex.storage.files import disk
from simindex.storage.files.descriptor import NOT_REGULAR, PLAIN, Descriptor

_LONGEST_HOLDER = 512
_TOLD_HOLDER = 200
_HOLDER = re.compile(rb"process [0-9]+( (o(n( [^\n]{0,400}\n?)?)?)?)?")
"""What the lock's file says of who holds it, whole or cut short by a crash behind the word."""


def lock(path: Path) -> Descriptor:
    """Takes the writer's lock, for `unlock` to give back; IndexLocked names who holds it.

    It goes with the descriptor, too: an interrupt may drop that before anybody has it.
    """
    file: Descriptor | None = None
    try:
        while file is None:  # a creation that failed has removed it meanwhile
            file = _locked(path)
        fd = file.fileno()
        text = _own_text()
        with suppress(OSError):  # it serves messages only: a full disk must not keep a writer out
            if _tells_holder(os.pread(fd, _LONGEST_HOLDER, 0)):  # else it is somebody's file
                disk.system.resize(fd, 0)
                disk.system.write(fd, text, 0)
    except BaseException:
        if file is not None:
            file.close()
        raise
    return file


def _locked(path: Path) -> Descriptor | None:
    """The locked file; None if that has lost its name since it was opened."""
    try:
        file = disk.system.create(path, os.O_RDWR | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno in NOT_REGULAR:
            raise CorruptFile(
                f"{path} is not a regular file",
                remedy="remove it; the next writer creates a new one", path=str(path),
            ) from error
        raise
    try:
        fd = file.fileno()
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:  # its text would be written
            raise CorruptFile(
                f"{path} is not a regular file of its own",
                remedy="remove it; the next writer creates a new one", path=str(path),
            )
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        named = _is_named(fd, path)
    except BlockingIOError as error:
        try:
            text = os.pread(fd, _LONGEST_HOLDER, 0)
        finally:
            file.close()
        holder = _told_holder(text)
        if text == _own_text():
            raise IndexLocked(
                f"{path.parent} is locked by a writer that this very process has open ({holder})",
                remedy="close that handle first, as the end of its `with` block does, or write "
                "through it, or open it with mode 'r'",
                path=str(path.parent), holder=holder,
            ) from error
        raise IndexLocked(
            f"{path.parent} is locked by a writer: {holder}",
            remedy="wait until it has finished, or open it with mode 'r'",
            path=str(path.parent), holder=holder,
        ) from error
    except BaseException:
        file.close()
        raise
    if not named:
        file.close()
        return None
    return file


def unlock(file: Descriptor) -> None:
    """Gives the writer's lock back, also where a forked child still has its descriptor open.

    May be called again, after an interrupt.
    """
    if file.closed:
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_UN)
    finally:
        file.close()


def is_locked(file: Descriptor, path: Path) -> bool:
    """Whether a lock still keeps others out: its name leads to the file that is locked."""
    return not file.closed and _is_named(file.fileno(), path)


def is_lock(path: Path) -> bool:
    """Whether a file may be the writer's lock: empty, or with the text that `lock` writes."""
    try:
        file = Descriptor(path, PLAIN)
    except OSError:
        return False
    with file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return False
        text = os.read(file.fileno(), _LONGEST_HOLDER + 1)
    return _tells_holder(text)


def _own_text() -> bytes:
    """What this process writes into a lock that it holds."""
    return f"process {os.getpid()} on {os.uname().nodename}\n".encode(errors="replace")


def _told_holder(text: bytes) -> str:
    """Who a lock's text says holds it, for people: anybody may have written it."""
    found = text.rstrip(b"\0").decode("utf-8", "backslashreplace").strip() or "another process"
    shown = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in found)
    return shown if len(shown) <= _TOLD_HOLDER else f"{shown[: _TOLD_HOLDER - 3]}..."


def _tells_holder(text: bytes) -> bool:
    """Whether a lock's text is of this package, or what a crash left of it: bytes may be zeros."""
    text = text.rstrip(b"\0")
    return b"process ".startswith(text) or _HOLDER.fullmatch(text) is not None


def hold(directory: Path) -> Descriptor | None:
    """Holds a directory until the descriptor that is returned is closed, or the process ends.

    None where another process holds it, or it is gone or no directory.
    """
    try:
        held = Descriptor(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(held.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_named(held.fileno(), directory):
            return held
    except BlockingIOError:
        pass
    except BaseException:
        held.close()
        raise
    held.close()
    return None


def _is_named(fd: int, path: Path) -> bool:
    """Whether a path still leads to what is open: who held it before may have removed it."""
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False
