"""Texts are told from other bytes by the first of them."""

from __future__ import annotations

import gzip
import random

import pytest

from simindex.inputs.binary_data import HEAD_BYTES, is_binary, is_text


@pytest.mark.parametrize(
    ("data", "binary", "text"),
    [
        (b"", False, False), (b"a", False, True), (b"a\0", True, False),
        ("ä".encode() * HEAD_BYTES, False, True), (b"a" + "ä".encode() * HEAD_BYTES, False, True),
        ("ä".encode("latin-1") * 9, False, False), (b"\x01" * 9, True, False),
        (b"a" * HEAD_BYTES + b"\0\xff", False, True), (b"\x1b[1m bold \x1b[0m", False, True),
        (gzip.compress(random.Random(3).randbytes(999)), True, False),
    ],
)
def test_a_text_is_told_from_other_bytes(data: bytes, binary: bool, text: bool) -> None:
    assert (is_binary(data), is_text(data)) == (binary, text)
