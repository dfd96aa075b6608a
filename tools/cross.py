"""The kernels compiled for systems that are not this one: `python tools/cross.py`.

Each is compiled and linked by zig, which has the headers and libraries of all of them, with numpy's
headers from its wheel for that system and Python's from here. A warning is an error. What comes out
is not run: it shows that the sources need nothing that a system does not have. cibuildwheel
(pyproject.toml) makes and tests the wheels, where Docker and a Mac are at hand.

zig, CMake and the rest are installed into build/cross, some 400 MB, at the first run.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build" / "cross"


@dataclass(frozen=True)
class System:
    """What zig, CMake and wheels call it."""

    target: str
    name: str
    processor: str
    wheels: str


SYSTEMS = {
    "glibc-arm64": System("aarch64-linux-gnu.2.28", "Linux", "aarch64", "manylinux_2_28_aarch64"),
    "musl-x86-64": System("x86_64-linux-musl", "Linux", "x86_64", "musllinux_1_2_x86_64"),
    "musl-arm64": System("aarch64-linux-musl", "Linux", "aarch64", "musllinux_1_2_aarch64"),
    "macos-arm64": System("aarch64-macos.11.0", "Darwin", "arm64", "macosx_14_0_arm64"),
}

COMPILER = """#!/bin/sh
# What only Apple's linker knows is left out: zig lets names of Python be found at run time.
for argument in "$@"; do
  shift
  case $argument in
    -Wl,@*) set -- "$@" -Wl,-undefined,dynamic_lookup ;;
    -bundle) set -- "$@" -shared ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {zig} c++ -target {target} "$@"
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Compiles for each system, and says which could be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "systems", nargs="*", choices=[*SYSTEMS, "all"], default="all", metavar="SYSTEM",
        help=", ".join(SYSTEMS),
    )
    asked = parser.parse_args(arguments)
    names = list(SYSTEMS) if "all" in asked.systems else asked.systems
    python = PLACE / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PLACE)], check=True)
    _pip(python, "install", "ziglang", "cmake", "ninja", "nanobind", "numpy")
    failed = 0
    for name in names:
        module = build(name, SYSTEMS[name], python)
        failed += module is None
        print(f"{name}: {f'{module.stat().st_size:,} bytes' if module else 'failed'}", flush=True)
    return 1 if failed else 0


def build(name: str, system: System, python: Path) -> Path | None:
    """The module, or None after the compiler's messages."""
    place = PLACE / name
    place.mkdir(exist_ok=True)
    zig = _printed(python, "import ziglang; print(ziglang.__path__[0])") / "zig"
    compiler = _script(
        place / "compiler", COMPILER.format(zig=shlex.quote(str(zig)), target=system.target)
    )
    archiver = _script(place / "archiver", f'#!/bin/sh\nexec {shlex.quote(str(zig))} ar "$@"\n')
    indexer = _script(place / "indexer", f'#!/bin/sh\nexec {shlex.quote(str(zig))} ranlib "$@"\n')
    headers = sysconfig.get_path("include")
    defined = {
        "CMAKE_CXX_COMPILER": compiler, "CMAKE_AR": archiver, "CMAKE_RANLIB": indexer,
        "CMAKE_SYSTEM_NAME": system.name, "CMAKE_SYSTEM_PROCESSOR": system.processor,
        "CMAKE_OSX_SYSROOT": "", "CMAKE_TRY_COMPILE_TARGET_TYPE": "STATIC_LIBRARY",
        "Python_EXECUTABLE": python, "Python_INCLUDE_DIR": headers,
        "Python_NumPy_INCLUDE_DIR": _numpy_headers(place, system, python),
        # Warnings are for our sources: these headers were configured for another C library.
        "SIMINDEX_WARNINGS_ARE_ERRORS": "ON", "CMAKE_CXX_FLAGS": f"-isystem {headers}",
    }
    commands = (
        ["cmake", "-G", "Ninja", "-S", ROOT, "-B", place / "build",
         *(f"-D{key}={value}" for key, value in defined.items())],
        ["cmake", "--build", place / "build"],
    )
    for command in commands:
        done = subprocess.run(
            [str(part) for part in command], check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"},
        )
        if done.returncode:
            print(done.stdout[-4000:], file=sys.stderr)
            return None
    return next((place / "build").glob("_native*.so"))


def _numpy_headers(place: Path, system: System, python: Path) -> Path:
    """Its headers tell what the system's own headers are."""
    headers = place / "numpy" / "_core" / "include"
    if not headers.is_dir():
        _pip(
            python, "download", "numpy", "--no-deps", "--only-binary=:all:", "--platform",
            system.wheels, "--dest", str(place),
        )
        with zipfile.ZipFile(next(place.glob("numpy-*.whl"))) as wheel:
            wheel.extractall(place)
    return headers


def _pip(python: Path, *arguments: str) -> None:
    subprocess.run(
        [str(python), "-m", "pip", arguments[0], "--quiet", "--disable-pip-version-check",
         *arguments[1:]],
        check=True,
    )


def _printed(python: Path, code: str) -> Path:
    return Path(subprocess.run(
        [str(python), "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip())


def _script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


if __name__ == "__main__":
    sys.exit(main())
