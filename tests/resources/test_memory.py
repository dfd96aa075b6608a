"""What memory a process has, by the machine and by its control groups."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from simindex.resources import memory


@pytest.mark.parametrize(("lines", "limits", "least"), [
    ("0::/a/b\n", {"memory.max": "max", "a/memory.max": "3000", "a/b/memory.max": "9000"}, 3000),
    ("0::/a/b\n", {"a/b/memory.max": "2000"}, 2000),
    ("5:cpu,memory:/c\n2:pids:/c\n", {"memory/c/memory.limit_in_bytes": "700"}, 700),
    ("5:cpu:/c\n", {"c/memory.limit_in_bytes": "700", "c/memory.max": "600"}, None),
    ("0::/\n", {"memory.max": "max"}, None),
])
def test_the_least_limit_of_a_group_and_those_around_it(
    tmp_path: Path, lines: str, limits: dict[str, str], least: int | None
) -> None:
    own = tmp_path / "own"
    own.write_text(lines)
    groups = tmp_path / "groups"
    for name, text in limits.items():
        (groups / name).parent.mkdir(parents=True, exist_ok=True)
        (groups / name).write_text(text + "\n")
    assert min(memory._group_limits(groups, own), default=None) == least


def test_a_system_without_groups_has_no_limit(tmp_path: Path) -> None:
    assert list(memory._group_limits(tmp_path, tmp_path / "missing")) == []


def test_an_answer_takes_a_share_of_what_there_is() -> None:
    assert 1 << 26 < memory.machine_bytes() < 1 << 60
    assert memory.answer_bytes() == memory.machine_bytes() // 4


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries keep less")
def test_freed_memory_is_given_back_below_what_is_held() -> None:
    """The C library gives back by itself only what is above all that is held."""
    size = 60_000
    blocks = [bytearray(size) for _ in range(1000)]
    held = blocks[-1]
    before = anonymous_bytes()
    blocks.clear()
    memory.give_back()
    assert anonymous_bytes() < before - 900 * size
    assert len(held) == size


def anonymous_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
