"""Which folder of the kernels may include which, read from the sources."""

from __future__ import annotations

import re
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "simindex" / "_kernels" / "src"

FOLDERS = (
    "cpu", "bits", "simhash", "storage", "methods", "methods/probe", "methods/scan",
    "methods/issl", "pairs", "inputs", "bind",
)
"""Lowest first: a file includes those of its own folder and of the ones before it."""


def includes() -> list[tuple[str, str]]:
    """Each file beside what it includes, as paths below the sources."""
    return [
        (path.relative_to(SOURCES).as_posix(), name)
        for path in sorted(SOURCES.rglob("*.?pp")) + sorted(SOURCES.rglob("*.inc"))
        for name in re.findall(r'^#include ["<]([^">]+)[">]', path.read_text("utf-8"), re.M)
    ]


def folder(path: str) -> str:
    return path.rpartition("/")[0]


def test_a_kernel_includes_only_its_own_folder_and_lower_ones() -> None:
    up = [
        (path, name) for path, name in includes()
        if (SOURCES / name).exists() and FOLDERS.index(folder(name)) > FOLDERS.index(folder(path))
    ]
    assert up == []


def test_only_bindings_include_python() -> None:
    foreign = re.compile(r"Python\.h|nanobind/|numpy/")
    assert {folder(path) for path, name in includes() if foreign.match(name)} == {"bind"}


def test_the_readme_describes_each_folder_in_order() -> None:
    rows = re.findall(r"^\| `([^`]+)/` \|", (SOURCES / "README.md").read_text("utf-8"), re.M)
    assert tuple(rows) == FOLDERS
