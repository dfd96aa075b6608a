"""What the figures were made on, and one core to make them on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PACKAGES = ("simindex", "numpy", "lmdb", "faiss-cpu", "gaoya")
CORES = frozenset(os.sched_getaffinity(0))
"""Those this process could use when it began."""


def pin_to_one_core() -> int:
    """Binds this process and its children to the last core it may use; returns that core."""
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"
    return core


@contextmanager
def on_every_core() -> Iterator[None]:
    """Lets this thread, and those it starts, use every core again for a while."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, CORES)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def machine_line(cores: int) -> str:
    """Processor, instruction set, cores, memory, kernel and versions, in one line."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    parts = [
        processor_name(),
        f"SIMD {simd_level()}",
        f"{cores} cores, one used",
        f"{memory:.0f} GiB",
        f"{platform.system()} {platform.release()}",
        f"Python {platform.python_version()}",
        *(f"{name} {version}" for name in PACKAGES if (version := version_of(name))),
    ]
    return "; ".join(parts)


def processor_name() -> str:
    """The processor's name, family and model: virtual ones may share a name."""
    fields: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    name = fields.get("model name") or platform.machine()
    if "cpu family" in fields:
        name += f" (family {fields['cpu family']}, model {fields['model']})"
    return name


def simd_level() -> str:
    """The instruction set that the kernels choose here."""
    from simindex import _kernels

    return str(_kernels.LEVELS[_kernels._native.default_level()])


def version_of(package: str) -> str | None:
    """The installed version, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def resident_bytes() -> int:
    """Memory that this process holds now, files it maps included."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def own_bytes() -> int:
    """Memory that this process holds now and no file has."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(status.split("RssAnon:")[1].split()[0])


def forget_peak() -> None:
    """Makes `peak_bytes` begin anew."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_bytes(process: int | None = None) -> int:
    """The most memory this process held, or the one of a number; unlike getrusage's, nothing of the
    process before exec."""
    status = Path(f"/proc/{process or 'self'}/status").read_text(encoding="ascii")
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


READ_BY = "the greatest of all words, by numpy"


def read_words(words: Any) -> int:
    """Reads every word of an array once, as fast as one thread can from memory: the greatest.

    Of 128 MB it takes what a kernel does that counts bits (12.3 and 12.6 GB/s on a Xeon at 2.5
    GHz): both wait for memory.
    """
    return int(words.max())


def processor_seconds(process: int) -> float:
    """Time that a process has spent on processors, all of its threads together."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def disk_bytes(path: Path) -> int:
    """Space on the disk of a file, or of all below a directory."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(512 * file.stat().st_blocks for file in files if file.is_file())
