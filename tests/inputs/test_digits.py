"""Lines of hexadecimal digits as fingerprints."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from fingerprint_inputs import take_rows
from hypothesis import given
from hypothesis import strategies as st

from simindex.cli.console import cell
from simindex.inputs.digits import is_digits, unescaped


def test_lines_with_and_without_keys_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.hex"
    path.write_text("\ufeff00000000000000ff\r\n\n  \n0123456789ABCDEF")
    read = take_rows(path)
    assert read.values == [255, 0x0123456789ABCDEF]
    assert read.names == [f"{path}:1", f"{path}:4"]
    path.write_text("00000000000000ff\ta\\tb\n0000000000000001\t\n")
    assert take_rows(path).names == ["a\tb", ""]


def test_bad_lines_are_told_with_their_number(tmp_path: Path) -> None:
    path = tmp_path / "a.hex"
    path.write_bytes(
        b"0000000000000001\n00000000000000\n" + b"0" * 32 + b"\n000000000000000g\n"
        b"0000000000000002\tkey\n\xff\n" + "１".encode() * 16 + b"\n0000000000000003\n"
    )
    read = take_rows(path)
    assert read.values == [1, 3]
    assert [told.split(": ")[0] for told in read.bad] == [f"a.hex:{n}" for n in range(2, 8)]
    assert "a fingerprint of 128 bits, and 64 are needed" in read.bad[1]
    assert "has a key, and rows before it no name" in read.bad[3]


def test_the_caller_may_name_the_width(tmp_path: Path) -> None:
    path = tmp_path / "a.hex"
    path.write_text("0" * 16 + "\n" + "f" * 32 + "\n")
    read = take_rows(path, bits=128)
    assert read.values == [[2**64 - 1] * 2] and len(read.bad) == 1


@given(st.text(st.characters(codec="utf-8")))
def test_a_key_that_the_shell_prints_reads_back(key: str) -> None:
    written = cell(key)
    assert unescaped(written) == key
    assert not any(unicodedata.category(one) == "Cc" for one in written)


@pytest.mark.parametrize(
    ("head", "found"),
    [
        (b"0123456789abcdef\n", True), (b"0123456789abcdef\tkey\nrest", True),
        (b"0123456789abcdef", False), (b"0123456789abcde\n", False), (b"{}\n", False), (b"", False),
    ],
)  # fmt: skip
def test_the_first_line_tells_it(head: bytes, found: bool) -> None:
    assert is_digits(head, "text") is found
