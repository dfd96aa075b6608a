"""The machines and file systems that an index may be on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from simindex.errors import UnsupportedStorage

NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "ceph", "lustre", "afs", "gpfs"}
)


def check_storage(directory: Path, *, allow_remote: bool) -> None:
    """Refuses machines and file systems on which locks and maps cannot be trusted."""
    if sys.byteorder != "little" or sys.maxsize < 1 << 40:
        raise UnsupportedStorage("simindex needs a 64-bit little-endian machine")
    kind = file_system_kind(directory)
    if kind in NETWORK_FILE_SYSTEMS and not allow_remote:
        raise UnsupportedStorage(
            f"{directory} is on a {kind} file system, where locks and memory maps are not "
            "reliable: keep the index on a local disk, or set allow_remote and use one machine",
            path=str(directory), found=kind,
        )


def file_system_kind(path: Path) -> str:
    """The file system's name as the kernel gives it, or "" where that is unknown."""
    try:
        device = path.stat().st_dev
        wanted = f"{os.major(device)}:{os.minor(device)}"
        for line in Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines():
            fields, _, rest = line.partition(" - ")
            if fields.split()[2] == wanted:
                return rest.split()[0]
    except (OSError, IndexError):
        pass
    return ""
