"""What processes count where a kill cannot take it, and what the system says of them.

    Gauges     a small file that all processes of a trial map: a line of numbers for each process
    Sample     memory, descriptors and maps of a process; bytes of an index
    Plateau    whether samples of a steady state stop growing
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FIELDS = (
    "beat", "answers", "brute", "subset", "batches", "pinned", "wrong", "lost", "operations",
    "compactions", "checks", "settled", "voided", "generation", "ready",
)
LINES = 8192


class Gauges:
    """Lines of int64, one for each process that is started."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        shape = (LINES, len(FIELDS))
        self._all: NDArray[np.int64] = np.memmap(path, np.int64, "w+" if create else "r+", 0, shape)
        self.line = 0

    def add(self, name: str, count: int = 1) -> None:
        """Adds to a number of this process; also says that it is alive."""
        self._all[self.line, FIELDS.index(name)] += count
        self._all[self.line, 0] = time.monotonic_ns()

    def set(self, name: str, value: int) -> None:
        """Sets a number of this process."""
        self._all[self.line, FIELDS.index(name)] = value

    def get(self, line: int, name: str) -> int:
        """A number of any process."""
        return int(self._all[line, FIELDS.index(name)])

    def total(self, name: str) -> int:
        """Of all processes."""
        return int(self._all[1:, FIELDS.index(name)].sum())

    @property
    def stopping(self) -> bool:
        """Whether all are to end."""
        return bool(self._all[0, 0])

    def stop(self) -> None:
        """Tells all to end."""
        self._all[0, 0] = 1


def of_process(pid: int) -> dict[str, int]:
    """Memory that is a process's own, descriptors and maps; empty if it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        if "RssAnon" not in fields:
            return {}
        descriptors = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208  names only, and fast
        maps = Path(f"/proc/{pid}/maps").read_text().count("\n")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return {}
    return {
        "memory": int(fields["RssAnon"].split()[0]) * 1024,
        "descriptors": len(descriptors),
        "maps": maps,
    }


def processor_s(pid: int) -> float:
    """Processor time that a process has used; 0 if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def unlinked(pids: list[int], index: Path) -> int:
    """Bytes of unlinked files of an index that processes keep."""
    found: dict[tuple[int, int], int] = {}
    for pid in pids:
        try:
            for fd in Path(f"/proc/{pid}/fd").iterdir():
                target = str(fd.readlink())
                if target.startswith(str(index)) and target.endswith(" (deleted)"):
                    status = fd.stat()
                    found[status.st_dev, status.st_ino] = status.st_blocks * 512
        except OSError:
            continue
    return sum(found.values())


def of_index(path: Path) -> dict[str, int]:
    """Bytes on the disk of the catalog and of all, and the number of files."""
    total = files = 0
    for part in ("segments", "catalog"):
        try:
            entries = list(os.scandir(path / part))
        except FileNotFoundError:
            continue
        for entry in entries:
            try:
                total += entry.stat(follow_symlinks=False).st_blocks * 512
            except FileNotFoundError:
                continue
            files += part == "segments"
    catalog = (path / "catalog" / "data.mdb").stat().st_blocks * 512
    return {"disk": total, "catalog": catalog, "files": files}


class Plateau:
    """Highest samples of each quarter of a trial, by name."""

    def __init__(self) -> None:
        self._samples: dict[str, list[tuple[float, int]]] = defaultdict(list)

    def add(self, share: float, who: str, sample: dict[str, int]) -> None:
        """Notes what was seen when `share` of the trial was over."""
        for name, value in sample.items():
            self._samples[f"{who} {name}"].append((share, value))

    def rows(self) -> list[tuple[str, int, int, bool]]:
        """(what, highest of the second quarter, highest of the last, whether that is not more)."""
        result = []
        for name, samples in sorted(self._samples.items()):
            before = max((v for at, v in samples if 0.25 <= at < 0.5), default=None)
            after = max((v for at, v in samples if at >= 0.75), default=None)
            if before is None or after is None:
                continue
            slack = 16 if name.endswith(("descriptors", "maps", "files")) else 16 << 20
            result.append((name, before, after, after <= 1.5 * before + slack))
        return result

    def table(self) -> str:
        """Markdown: the highest of the second and of the last quarter."""
        lines = ["| highest | second quarter | last quarter | plateau |", "|---|---:|---:|---|"]
        for name, before, after, held in self.rows():
            lines.append(f"| {name} | {before:,} | {after:,} | {'yes' if held else 'no'} |")
        return "\n".join(lines)
