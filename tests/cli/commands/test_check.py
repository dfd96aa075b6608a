"""`check` names what is damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., Any]


def test_check_finds_damage(run: Run, keyed: str, objects: Any, tmp_path: Path) -> None:
    sound = run("check", keyed)
    assert "no damage in 10 rows" in sound.stderr
    file = next((tmp_path / keyed).rglob("*.rows"))
    data = bytearray(file.read_bytes())
    data[4096] ^= 1
    file.write_bytes(data)
    damaged = run("check", keyed, code=3)
    severity, path, what = damaged.stdout.splitlines()[0].split("\t")
    assert severity == "error"
    assert file.name in path
    assert what
    assert "1 error in 10 rows" in damaged.stderr
    found, counts = objects(run("check", keyed, "--json", code=3).stdout)
    assert found["severity"] == "error"
    assert (counts["errors"], counts["notes"], counts["rows"]) == (1, 0, 10)


def test_a_sound_index_has_an_object_too(run: Run, keyed: str, objects: Any) -> None:
    sound = run("check", keyed, "--json")
    assert sound.stderr == ""
    (counts,) = objects(sound.stdout)
    assert counts.pop("seconds") >= 0
    assert counts == {"errors": 0, "notes": 0, "rows": 10}
