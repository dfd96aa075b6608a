"""Distances of short texts go by how many features they have. But documents with equal sketches
were asked for once, whatever their sizes. So "w13" was dropped as being as near to "w0 w13" as
"w13 w13" is, which came before it in the buffer. By itself it was kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from simindex.cli import program

TEXTS = {"a": "w0 w13", "b": "w13 w13", "c": "w13"}
OPTIONS = ("--similarity", "0.75", "--weighting", "sublinear", "--ngram", "1,2", "-q")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    monkeypatch.chdir(tmp_path)

    def keys(names: str, *options: Any) -> list[str]:
        lines = [json.dumps({"id": name, "text": TEXTS[name]}) for name in names]
        Path("in.jsonl").write_text("\n".join(lines) + "\n")
        done = CliRunner().invoke(program, ["dedup", "in.jsonl", *map(str, options)])
        assert done.exit_code == 0, done.stderr
        return [json.loads(line)["id"] for line in done.stdout.splitlines()]

    return keys


@pytest.mark.parametrize("more", [(), ("--verify-text",)])
def test_equal_sketches_of_other_sizes_are_asked_for_by_themselves(
    kept: Callable[..., list[str]], more: tuple[str, ...]
) -> None:
    assert kept("a", *OPTIONS, "--index", "k.sim") == ["a"]
    options = ("--similarity", "0.75", "-q", "--index", "k.sim", *more)
    assert kept("bc", *options) == ["c"]


def test_the_buffer_does_not_matter(kept: Callable[..., list[str]]) -> None:
    assert kept("abc", *OPTIONS) == kept("abc", *OPTIONS, "--buffer", 1) == ["a", "c"]
