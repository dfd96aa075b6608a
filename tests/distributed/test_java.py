"""Java is found, or missed by an error that says what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

from simindex.distributed.java import require_java
from simindex.errors import MissingExtra


def _java(folder: Path, script: str) -> None:
    place = folder / "bin" / "java"
    place.parent.mkdir(parents=True)
    place.write_text(f"#!/bin/sh\n{script}\n")
    place.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'openjdk version \"17.0.9\" 2023-10-17' >&2", None),
        ("echo 'openjdk version \"25\" 2025-09-16' >&2", None),
        ("echo 'java version \"1.8.0_392\"' >&2", "of version 1"),
        ("echo 'openjdk version \"11.0.2\"' >&2", "of version 11"),
        ("echo Killed >&2; exit 1", "does not say which it is"),
    ],
)
def test_only_a_new_enough_java_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, message: str | None
) -> None:
    _java(tmp_path, script)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if message is None:
        require_java()
        return
    with pytest.raises(MissingExtra, match=message) as raised:
        require_java()
    assert "install openjdk-17-jre-headless" in (raised.value.remedy or "")


def test_a_missing_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtra, match="there is no `java`"):
        require_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(MissingExtra, match="does not run"):
        require_java()
