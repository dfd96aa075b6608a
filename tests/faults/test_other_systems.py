"""An index lives without the calls that only Linux has: a process without them does all its work.

macOS lacks these functions and constants, and has no /proc. This shows that nothing but them is
needed; it does not show what macOS does with the rest.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WITHOUT = """
import builtins, errno, fcntl, io, mmap, os, sys

for module, names in {
    os: ("sched_getaffinity", "posix_fallocate", "posix_fadvise", "POSIX_FADV_DONTNEED",
         "POSIX_FADV_WILLNEED", "sched_setaffinity", "fdatasync"),
    fcntl: ("F_SETLEASE",),
    mmap: ("MADV_HUGEPAGE",),
    errno: ("EHWPOISON",),
}.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)

def hidden(event, arguments):
    if event == "open" and str(arguments[0]).startswith(("/proc/", "/sys/")):
        raise FileNotFoundError(errno.ENOENT, "no such file", arguments[0])

sys.addaudithook(hidden)
"""

WORK = """
import numpy as np

import simindex
from simindex._kernels import _native
from simindex.planning import measurement

_native.exchange = lambda path, other: errno.ENOTSUP
_native.write_back = lambda fd, offset, size, wait: 0

measure = measurement.measure
measurement.measure = lambda file: measure(file, level_rows=(300, 5_000, 40_000))
path, copy = sys.argv[1:]
rows = np.random.default_rng(7).integers(0, 1 << 63, 30_000, dtype=np.uint64)
options = simindex.IndexOptions(
    batch_rows=2_000, keys=True, structures=("psm", "bphs:G=2,g=1", "issl")
)
with simindex.open(path, "n", options=options) as index:
    for start in range(0, len(rows), 3_000):
        keys = [f"row {i}" for i in range(start, start + 3_000)]
        index.append(simindex.Batch(rows[start : start + 3_000], keys=keys))
        index.commit()
    index.delete(keys=["row 3"])
    index.tune()
    index.compact(full=True)
    index.backup(copy)
    assert index.seen_or_add(simindex.Batch(rows[4:5] ^ np.uint64(1), keys=["near"])).key == "row 4"
for place in (path, copy):
    with simindex.open(place) as index:
        found = index.query(rows[3:5], h=3)
        assert len(index.query(rows, h=0, threads=2)) == len(rows) - 1
        assert [match.key for match in found] == ["row 4"], (place, found)
        assert index.check() == []
assert simindex.repair(path) is not None
print("done")
"""


def test_an_index_lives_without_what_only_linux_has(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT + WORK, str(tmp_path / "a.sim"), str(tmp_path / "b.sim")],
        capture_output=True, text=True, timeout=120, check=False,
    )
    said = [line for line in ran.stderr.splitlines() if "machine was busy" not in line]
    assert (ran.returncode, ran.stdout, said) == (0, "done\n", [])
