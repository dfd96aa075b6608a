"""What a new wheel must do on the machine it was made for, in a second; nothing optional is needed.

The wheels of `[tool.cibuildwheel]` are tested by this file and by `tests/kernels`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex.errors import IndexLocked

FOX = "the quick brown fox jumps over the lazy dog and runs away into the deep dark wood"

READER = """
import sys
import simindex

with simindex.open(sys.argv[1]) as index:
    print(*(match.key for match in index.query(sys.argv[2])))
"""


def run(*arguments: str) -> str:
    """What another process of this Python prints; SIMINDEX_SIMD and the like reach it."""
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True, timeout=120,
        env=environment,
    ).stdout


def test_an_index_is_written_and_read_by_other_processes(tmp_path: Path) -> None:
    path = tmp_path / "pages.sim"
    recipe = simindex.Recipe()
    options = simindex.IndexOptions(keys=True, recipe=recipe)
    with simindex.open(path, "c", options=options) as index:
        assert index.seen_or_add(FOX, key="a") is None
        seen = index.seen_or_add(FOX + "!", key="b")
        assert seen is not None
        assert seen.key == "a"
        index.commit()
        with pytest.raises(IndexLocked):
            simindex.open(path, "w")
        assert run("-c", READER, str(path), FOX) == "a\n"
        index.backup(tmp_path / "copy.sim")
    assert run("-c", READER, str(tmp_path / "copy.sim"), FOX.upper()) == "a\n"
    with simindex.open(path) as index:
        assert index.check() == []


def test_segments_are_merged_and_searched_in_all_ways(tmp_path: Path) -> None:
    rows = np.random.default_rng(5).integers(0, 1 << 63, 20_000, dtype=np.uint64)
    options = simindex.IndexOptions(batch_rows=4_000, structures=("psm", "bphs:G=2,g=1", "issl"))
    with simindex.open(tmp_path / "rows.sim", "c", options=options) as index:
        index.append(rows)
        index.commit()
        index.compact(full=True)
        asked = rows[::1_000] ^ np.uint64(0b101)
        for method in ("auto", "scan", "psm"):
            found = index.query(asked, h=2, method=method)
            assert sorted(found.query.tolist()) == list(range(len(asked))), method
            assert set(found.distance.tolist()) == {2}
        assert index.check() == []


def test_the_shell_drops_a_near_duplicate(tmp_path: Path) -> None:
    lines = [json.dumps({"id": name, "text": text}) for name, text in {
        "a": FOX, "b": FOX + "!", "c": "other words of another page on railways and on snow"
    }.items()]
    (tmp_path / "pages.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    kept = run("-m", "simindex", "dedup", str(tmp_path / "pages.jsonl"), "--quiet")
    assert [json.loads(line)["id"] for line in kept.splitlines()] == ["a", "c"]
    assert run("-m", "simindex", "--version").startswith("simindex")
