"""Tools that take names of what to do: they do all of it if none is named, as `make` calls them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import cross
import fuzz
import instructions
import pytest
import sanitize
from fuzzing import libfuzzer
from reliability import report


def test_kernels_are_compiled_for_all_systems(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done: list[str] = []
    monkeypatch.setattr(cross, "PLACE", tmp_path)
    monkeypatch.setattr(cross, "_pip", lambda *_: None)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    monkeypatch.setattr(cross, "build", lambda name, *_: done.append(name))
    cross.main([])
    assert done == list(cross.SYSTEMS)
    cross.main(["macos-arm64"])
    assert done[len(cross.SYSTEMS) :] == ["macos-arm64"]


def test_all_targets_are_fuzzed(monkeypatch: pytest.MonkeyPatch) -> None:
    every = [*fuzz.compiled.names(), *fuzz.PYTHON]
    done: list[str] = []

    def run(name: str, *_: Any, runs: int, **__: Any) -> libfuzzer.Run:
        done.append(name)
        return libfuzzer.Run(name, runs, runs, 1.0, 1.0, 1, 1, 1, 0, 0, ())

    monkeypatch.setattr(fuzz.compiled, "compiler", lambda: "clang")
    monkeypatch.setattr(fuzz.compiled, "build", lambda *_: dict.fromkeys(every, Path("program")))
    monkeypatch.setattr(fuzz.importlib.util, "find_spec", lambda _: sys)
    monkeypatch.setattr(fuzz.libfuzzer, "run", run)
    assert fuzz.main(["--jobs", "1"]) == 0
    assert done == every
    assert fuzz.main([every[1]]) == 0
    assert done[len(every) :] == [every[1]]


def test_kernels_are_tested_under_all_sanitizers(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def run(name: str, *_: Any) -> report.Outcome:
        done.append(name)
        return report.Outcome(name, 1, 1, 1.0)

    monkeypatch.setattr(sanitize.shutil, "which", lambda name: name)
    monkeypatch.setattr(sanitize, "build", lambda *_: Path("python"))
    monkeypatch.setattr(sanitize, "_run", run)
    assert sanitize.main([]) == 0
    assert done == list(sanitize.KINDS)


def test_instructions_of_all_workloads_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def counted(python: str, place: Path, names: list[str]) -> dict[str, int]:
        asked.append(names)
        return dict.fromkeys(names, 1)

    monkeypatch.setattr(instructions, "counted", counted)
    assert instructions.main([]) == 0
    assert asked == [list(instructions.WORKLOADS)] * 2


@pytest.mark.parametrize("tool", [cross, fuzz, sanitize, instructions])
def test_an_unknown_name_is_refused(tool: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tool.main(["nothing"])
    assert "invalid choice: 'nothing'" in capsys.readouterr().err
