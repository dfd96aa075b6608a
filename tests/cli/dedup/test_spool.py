"""Standard input is ranked over all of it, from a temporary copy."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simindex.cli.dedup.spool import copied_stdin
from simindex.errors import InvalidOption

Run = Callable[..., Any]


@pytest.mark.parametrize("policy", ["longest", "newest", "highest:n"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_stream_is_decided_as_a_file_is(
    run: Run, three: Path, policy: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """Over all of it: a temporary copy is read twice, and gone at the end."""
    (tmp_path / "temp").mkdir()
    given = ("dedup", "--keep", policy, "--temp-dir", "temp", "--audit", "a")
    of_file = run(*given, three)
    audit = Path("a").read_text().replace(str(three), "-")
    of_stream = run(*given, input=pack(three.read_bytes()))
    assert of_stream.stdout == of_file.stdout
    assert Path("a").read_text() == audit
    assert "decided within" not in of_stream.stderr
    assert not list((tmp_path / "temp").iterdir())
    marked = run(*given, "-", "--mark", input=pack(three.read_bytes())).stdout
    assert marked == run(*given, three, "--mark").stdout


def test_a_stream_that_does_not_fit_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "stdin").symlink_to("/dev/full")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"some lines")))
    with pytest.raises(InvalidOption, match="has no room for a copy of standard input") as refused:
        copied_stdin(tmp_path)
    assert "--temp-dir" in str(refused.value.remedy)
