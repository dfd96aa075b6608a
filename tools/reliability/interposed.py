"""The calls of this process to the C library, counted and disturbed: `interpose.c` from Python.

    environment    LD_PRELOAD of the library, built by the C compiler that builds the package
    Plan           which use of which calls is disturbed, and how
    disturbed      runs something under a plan, in a process that was started in that environment

One interpreter is started so and forks a child for each trial: a fork takes milliseconds, a start a
third of a second.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).with_name("interpose.c")

PASS, FAIL, PART, KILL, TEAR = range(5)
"""What becomes of a call: an error, a part of a write, the process's end before it or in it."""

CHANGES = ("create", "write", "truncate", "allocate", "sync", "rename", "unlink", "mkdir")
"""Calls that change what is on the disk."""

LIBRARIES = {"/_native.": 0, "lmdb/": 0, "libstdc++": 0, "_multiarray_umath": 5000}
"""Whose memory counts, from how many bytes on: the kernels, LMDB, larger arrays of numpy. Without
what it needs for itself numpy 2.4.6 ends in a signal or a SystemError: `a[b]`, for one."""

FOREVER = 1 << 62


def compiler() -> str | None:
    """A C compiler, if there is one."""
    return shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc") or shutil.which("clang")


@cache
def built() -> Path:
    """The library, built in a temporary folder that is removed at the end of this process."""
    found = compiler()
    if found is None:
        raise FileNotFoundError("there is no C compiler")
    folder = tempfile.TemporaryDirectory(prefix="interpose-")
    _folders.append(folder)
    library = Path(folder.name) / "interpose.so"
    subprocess.run(
        [found, "-O2", "-w", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"],
        check=True,
    )
    return library


_folders: list[tempfile.TemporaryDirectory[str]] = []


def environment() -> dict[str, str]:
    """What an interpreter must be started with."""
    return {"LD_PRELOAD": str(built())}


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(None)
    library.interpose_arm.argtypes = [
        ctypes.c_char_p, ctypes.c_ulong, ctypes.c_long, ctypes.c_long, ctypes.c_int, ctypes.c_int
    ]
    library.interpose_arm.restype = None
    library.interpose_fired.restype = ctypes.c_long
    for name, least in LIBRARIES.items():
        library.interpose_watch(name.encode(), ctypes.c_size_t(least))
    return library


@cache
def names() -> tuple[str, ...]:
    """The calls there are, in the library's order."""
    found = ctypes.c_char_p.in_dll(_library(), "interpose_names").value
    assert found is not None
    return tuple(found.decode().split())


@dataclass(frozen=True, slots=True)
class Plan:
    """The uses `first` to `last` of some calls, taken together, become something else."""

    calls: tuple[str, ...]
    first: int = FOREVER
    last: int = FOREVER
    action: int = PASS
    error: int = 0

    def __str__(self) -> str:
        how = {PASS: "counted", PART: "short", KILL: "killed", TEAR: "torn"}.get(
            self.action, errno.errorcode.get(self.error, str(self.error))
        )
        ever = " and all later" if self.last > self.first else ""
        return f"{'|'.join(self.calls)} {self.first}{ever}: {how}"


def arm(root: Path, plan: Plan) -> None:
    """From now on calls on files below `root` are counted, and the plan holds."""
    known = names()
    bits = sum(1 << known.index(name) for name in plan.calls)
    _library().interpose_arm(
        str(root).encode(), bits, plan.first, plan.last, plan.action, plan.error
    )


def disarm() -> None:
    """From now on all calls pass."""
    _library().interpose_disarm()


def rearm() -> None:
    """Goes on with the plan, and the counts, where it was disarmed."""
    _library().interpose_rearm()


def fired() -> int:
    """How many calls were disturbed since `arm`."""
    return int(_library().interpose_fired())


def counts() -> dict[str, int]:
    """Uses of each call since `arm`."""
    found = (ctypes.c_long * len(names()))()
    _library().interpose_counts(found)
    return dict(zip(names(), found, strict=True))


@contextmanager
def disturbed(root: Path, plan: Plan) -> Iterator[None]:
    """The plan holds within; not for threads that go on after it."""
    arm(root, plan)
    try:
        yield
    finally:
        disarm()
