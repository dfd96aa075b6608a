"""Texts that a run keeps in a file."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from simindex.cli.dedup import texts as module
from simindex.cli.dedup.texts import KeptTexts
from simindex.errors import InvalidOption


def test_texts_are_found_by_name_in_parts_and_among_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also several of a name, of other names with the same digest, and bytes as names."""
    monkeypatch.setattr(module, "RECENT", 8)
    monkeypatch.setattr(module, "digest_of", lambda name: len(name) * 7)
    kept = KeptTexts(tmp_path)
    for number in range(100):
        kept.keep("a" * (number % 37), f"text {number}")
        kept.keep(b"\xff%d" % number, "bytes")
    assert len(kept) == 200
    for length in range(37):
        expected = [f"text {number}" for number in range(100) if number % 37 == length]
        assert kept["a" * length] == expected
    assert kept[b"\xff99"] == ["bytes"]
    kept.keep("last", "é \ud800 \n")
    assert kept.get("last") == ["é \ud800 \n"]
    assert kept.get("none") is None and "b" not in kept
    with pytest.raises(TypeError):
        iter(kept)
    kept.close()


def test_a_full_folder_is_told(tmp_path: Path) -> None:
    kept = KeptTexts(tmp_path)

    class Full:
        def write(self, data: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    kept._file.close()
    kept._file = Full()  # type: ignore[assignment]
    with pytest.raises(InvalidOption, match="--temp-dir") as raised:
        kept.keep("a", "b")
    assert "No space left" in str(raised.value)
