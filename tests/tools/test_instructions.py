"""What is counted is the call that a workload names; the counts of two versions are compared."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "instructions.py"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("instructions", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "instructions", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROWS", 3000)
    monkeypatch.setattr(module, "WIDE_ROWS", 500)
    monkeypatch.setattr(module, "QUERIES", 100)
    return module


def test_each_workload_is_a_call_that_can_be_repeated(tool: ModuleType, tmp_path: Path) -> None:
    for name, workload in tool.WORKLOADS.items():
        call = workload(tmp_path)
        first, second = call(), call()
        if first is not None:
            assert len(first), name
            assert len(first) == len(second)


def test_two_versions_are_compared_by_their_workloads(tool: ModuleType) -> None:
    lines = tool.table({"pairs": 2_000_000, "gone": 1}, {"pairs": 3_000_000}).splitlines()
    assert lines[2:] == ["| pairs | 2.000 | 3.000 | 1.500 |"]


def test_a_dump_tells_its_workload_and_its_instructions(tool: ModuleType, tmp_path: Path) -> None:
    dump = tmp_path / "counts.1"
    dump.write_text("version: 1\ndesc: Trigger: Client Request: topk, scan\nfn=a\n\ntotals: 12\n")
    assert tool.dumped(dump) == ("topk, scan", 12)
    dump.write_text("version: 1\ndesc: Trigger: Program termination\n\ntotals: 12\n")
    with pytest.raises(SystemExit):
        tool.dumped(dump)


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("valgrind") is None
    or not Path("/usr/include/valgrind/callgrind.h").exists(), reason="valgrind is not there"
)
def test_one_version_takes_as_many_instructions_as_itself(
    tool: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tool.main(["text, 64 bits"]) == 0
    ratio = float(capsys.readouterr().out.split("|")[-2])
    assert abs(ratio - 1) < 0.01
