"""The walks of the public calls, as tools/walks.py follows them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import CodeType, ModuleType

import pytest
from test_layers import RANK, WORDS

ROOT = Path(__file__).resolve().parents[2]

GIVEN = {
    ("storage/files/refusals", "typed.<locals>.checked"),
    ("storage/files/refusals", "each"),
    ("storage/tables/sortedrows", "SortedRows.directory"),
    ("storage/segmentfiles", "SegmentFiles.merge"),
}
"""Functions that call what they are given: two translate the errors of a public call, one loads a
directory when it is first needed, and a merge tells how far it is. See decision 19."""


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("walks", ROOT / "tools/walks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


def rank(module: str) -> int:
    """Of the folder of a module."""
    folder, _, name = module.rpartition("/")
    return RANK["words"] if name in WORDS and not folder else RANK[folder]


def test_no_walk_climbs_to_a_higher_folder(tool: ModuleType, tmp_path: Path) -> None:
    def place(code: CodeType) -> tuple[str, str]:
        return tool.module_of(code), code.co_qualname

    for name, walk in tool.walks(tmp_path / "walked.sim").items():
        climbs = {
            (caller, called) for caller, called in
            ((place(one), place(other)) for one, other in walk.calls)
            if rank(called[0]) > rank(caller[0]) and caller not in GIVEN
        }
        assert not climbs, name
        assert walk.calls and rank(walk.modules()[-1].as_posix()) <= RANK["index"]


def test_a_walk_is_told_function_by_function(
    tool: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    tool.main(["append"])
    told = capsys.readouterr().out.splitlines()
    depth = {line.strip(): len(line) - len(line.lstrip()) for line in told}
    assert depth["index/index: Index.append"] < depth["writing/waiting: Waiting.append"]
    assert depth["index/index: Index.commit"] < depth["writing/writer: Writer.commit"]
    tool.main([])
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 8
    counts = {row.split(" | ")[0][2:]: row.split(" | ")[1:] for row in rows[2:]}
    assert int(counts["query again"][2]) < int(counts["query"][2])
