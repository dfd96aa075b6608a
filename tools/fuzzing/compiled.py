"""The drivers of native kernels, built by clang with libFuzzer and sanitizers.

Kernels get bytes whose checksums were verified. Bytes that were not must do no harm either.
So every execution of these is one behind checksums.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lmdb

from fuzzing.libfuzzer import MOST_BYTES

DRIVERS = Path(__file__).parent / "native"
KERNELS = Path(__file__).parents[2] / "simindex" / "_kernels" / "src"

FLAGS = (
    "-std=c++20", "-g", "-O2", "-fno-omit-frame-pointer", "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
)

TRACED = ("-fsanitize=fuzzer-no-link", "-fno-sanitize-coverage=trace-cmp")
"""Kernels compare numbers that are as good as random: to trace them takes half of the time."""

ENVIRONMENT = {
    # Without stacks of what was allocated, and with memory that is used again soon: twice as fast.
    "ASAN_OPTIONS": "malloc_context_size=1:quarantine_size_mb=1:detect_leaks=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


def compiler() -> str | None:
    """clang with libFuzzer, or None where there is none."""
    names = ["clang++", *(f"clang++-{version}" for version in range(25, 12, -1))]
    found = [shutil.which(name) for name in names]
    found += [str(path) for path in sorted(Path("/usr/lib").glob("llvm-*/bin/clang++"))]
    for path in found:
        if path is not None and _has_libfuzzer(path):
            return path
    return None


def _has_libfuzzer(path: str) -> bool:
    asked = subprocess.run(
        [path, "-print-runtime-dir"], capture_output=True, text=True, check=False
    )
    places = [Path(asked.stdout.strip()), Path(asked.stdout.strip()).parent / "linux"]
    return any(place.is_dir() and any(place.glob("*fuzzer*.a")) for place in places)


def seeds(name: str) -> list[bytes]:
    """Small files that a driver begins with; most find their way from nothing."""
    if name != "lmdb":
        return []
    found = []
    for keys, value_bytes in ((3, 20), (40, 200), (4, 6000)):
        with tempfile.TemporaryDirectory() as directory:
            with lmdb.open(directory, max_dbs=2, lib_version=0, lock=False) as environment:
                for database in (b"head", b"pending"):
                    opened = environment.open_db(database)
                    with environment.begin(db=opened, write=True) as txn:
                        for key in range(keys):
                            txn.put(b"%8d" % key, bytes([key]) * value_bytes)
                with environment.begin(db=opened, write=True) as txn:
                    txn.delete(b"%8d" % 1)
            data = Path(directory, "data.mdb").read_bytes()
        found.append(data[:MOST_BYTES])
    return found


def most_bytes(name: str) -> int:
    """Of an input: few take more, but where it is a whole file or texts, and bytes that are not
    there are read as 0."""
    return MOST_BYTES if name in ("lmdb", "text") else 2048


def names() -> list[str]:
    """The drivers there are."""
    return sorted(path.stem for path in DRIVERS.glob("*.cpp"))


def build(clang: str, directory: Path, jobs: int) -> dict[str, Path]:
    """The programs by name; what is newer than its sources stays as it is."""
    directory.mkdir(parents=True, exist_ok=True)
    headers = [*KERNELS.rglob("*.hpp"), *KERNELS.rglob("*.inc"), *DRIVERS.glob("*.hpp")]
    newest = max(path.stat().st_mtime for path in headers)
    with ThreadPoolExecutor(jobs) as pool:
        kernels = list(pool.map(
            lambda source: _object(clang, source, directory, newest, *TRACED),
            _kernel_sources(),
        ))
        drivers = list(pool.map(
            lambda source: _object(clang, source, directory, newest), sorted(DRIVERS.glob("*.cpp"))
        ))
    programs = {}
    for driver in drivers:
        programs[driver.stem.removeprefix("driver-")] = program = driver.with_suffix("")
        parts = [driver, *kernels]
        if not program.exists() or any(
            part.stat().st_mtime > program.stat().st_mtime for part in parts
        ):
            _run([
                clang, "-fsanitize=fuzzer,address,undefined", *map(str, parts), "-lpthread",
                "-o", str(program),
            ])
    return programs


def _kernel_sources() -> list[Path]:
    """All but the bindings, which alone need Python."""
    return sorted(set(KERNELS.rglob("*.cpp")) - set(KERNELS.glob("bind/*")))


def _object(clang: str, source: Path, directory: Path, newest: float, *more: str) -> Path:
    if source.parent == DRIVERS:
        name = f"driver-{source.stem}"
    else:
        name = "-".join(("kernel", *source.relative_to(KERNELS).with_suffix("").parts))
    made = directory / f"{name}.o"
    if made.exists() and made.stat().st_mtime > max(newest, source.stat().st_mtime):
        return made
    launcher = os.environ.get("CMAKE_CXX_COMPILER_LAUNCHER")
    _run([
        *([launcher] if launcher else []), clang, *FLAGS, *more, f"-I{KERNELS}", f"-I{DRIVERS}",
        "-c", str(source), "-o", str(made),
    ])
    return made


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True)
