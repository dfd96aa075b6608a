"""`build --key-secret`: machines that share a secret name documents alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from siphash import key_id

import simindex

Run = Callable[..., Any]

SECRET = bytes(range(160, 176))


@pytest.fixture
def source(write_jsonl: Callable[..., Path]) -> Path:
    return write_jsonl("d.jsonl", [
        {"id": f"k{n}", "text": f"the text number {n} of some words that tell little"}
        for n in range(3)
    ])


def ids_of(path: str) -> dict[Any, int]:
    with simindex.open(path, "r") as index:
        found = index.query(np.concatenate([part.fingerprints for part in index.rows()]), h=0)
        return dict(zip(found.keys() or [], found.id.tolist(), strict=True))


@pytest.mark.parametrize("form", ["{}", "{}\n", " \t{}\r\n\n"])
@pytest.mark.parametrize("upper", [False, True])
def test_builds_with_one_secret_give_equal_ids(
    run: Run, tmp_path: Path, source: Path, form: str, upper: bool
) -> None:
    digits = SECRET.hex().upper() if upper else SECRET.hex()
    (tmp_path / "secret").write_bytes(form.format(digits).encode())
    for name in ("a.sim", "b.sim"):
        run("build", name, source, "--key-secret", "secret")
        assert ids_of(name) == {
            f"k{n}": key_id(f"k{n}", SECRET) for n in range(3)
        }
    run("build", "c.sim", source)
    assert not set(ids_of("c.sim").values()) & set(
        ids_of("a.sim").values()
    )
    with simindex.open("a.sim", "r") as index:
        assert index.options.key_secret == SECRET


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\n", SECRET.hex()[:-1].encode(), SECRET.hex().encode() + b"0", SECRET,
        b"0x" + SECRET.hex().encode(), SECRET.hex().encode() + b"\n" + SECRET.hex().encode(),
        b"g" * 32, "０".encode() * 32, SECRET.hex().encode() + b" " * 2000 + b"0", b"\xff" * 32,
    ],
)
def test_a_file_without_a_secret_is_refused(
    run: Run, tmp_path: Path, source: Path, content: bytes
) -> None:
    """And says how to make one, not what it holds."""
    (tmp_path / "secret").write_bytes(content)
    result = run("build", "a.sim", source, "--key-secret", "secret", code=2)
    told = " ".join(result.stderr.split())
    assert "32 hexadecimal digits" in told
    assert "secrets.token_hex(16)" in told
    assert SECRET.hex()[:12] not in told
    assert not (tmp_path / "a.sim").exists()


def test_a_missing_file_is_refused(run: Run, tmp_path: Path, source: Path) -> None:
    for file in ("none", tmp_path):
        result = run("build", "a.sim", source, "--key-secret", file, code=2)
        told = " ".join(result.stderr.split())
        assert "cannot be read" in told
        assert "secrets.token_hex(16)" in told
    assert not (tmp_path / "a.sim").exists()


def test_an_index_that_is_added_to_has_its_own(
    run: Run, tmp_path: Path, source: Path
) -> None:
    (tmp_path / "secret").write_text(SECRET.hex())
    run("build", "a.sim", source)
    before = ids_of("a.sim")
    refused = run("build", "a.sim", source, "--append", "--key-secret", "secret", code=2)
    assert "it has another secret: leave out --key-secret, or" in refused.stderr
    run("build", "a.sim", source, "--append")
    assert ids_of("a.sim") == before
    with simindex.open("a.sim", "r") as index:
        assert index.options.key_secret != SECRET


def test_no_command_prints_it(run: Run, tmp_path: Path, source: Path) -> None:
    (tmp_path / "secret").write_text(SECRET.hex())
    said = run("build", "a.sim", source, "--key-secret", "secret", "--json").output
    for command in (
        ("stats", "a.sim"), ("stats", "a.sim", "--json"), ("check", "a.sim"), ("repair", "a.sim"),
        ("explain", "a.sim", "--text", "the text number 1 of some words"), ("export", "a.sim"),
    ):
        said += run(*command).output
    assert SECRET.hex() not in said.lower()
    assert repr(SECRET)[2:-1] not in said
    assert "secret" not in said
