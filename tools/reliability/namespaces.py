"""Mounts that only this process and its children see."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000


def enter() -> None:
    """Gives this process, which must have one thread, mounts of its own; raises OSError if not.

    Who is not root becomes so within, where the system allows it.
    """
    user, group = os.geteuid(), os.getegid()
    flags = CLONE_NEWNS if user == 0 else CLONE_NEWNS | CLONE_NEWUSER
    if ctypes.CDLL(None, use_errno=True).unshare(flags):
        raise OSError(ctypes.get_errno(), "no name space of mounts")
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    mount("--make-rprivate", "/")


def unmount(path: Path) -> None:
    """Takes it away again, at once or when it is no longer used."""
    subprocess.run(["umount", "-l", str(path)], check=True, capture_output=True)


def mount(*arguments: str) -> None:
    """Mounts something; raises OSError if it cannot."""
    try:
        done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise OSError("no mount command") from error
    if done.returncode:
        raise OSError(f"mount {arguments}: {done.stderr.strip()}")
