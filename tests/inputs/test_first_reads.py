"""First reads of streams that give few bytes at once."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

from simindex.inputs.binary_data import HEAD_BYTES
from simindex.inputs.first_reads import PipedInput, first_read


def giving(*pieces: bytes) -> Callable[[Any], int]:
    left = list(pieces)

    def some(buffer: Any) -> int:
        piece = left.pop(0) if left else b""
        buffer[: len(piece)] = piece
        return len(piece)

    return some


@pytest.mark.parametrize(
    ("pieces", "read"),
    [
        ((), b""),
        ((b"P", b"AR", b"1"), b"PAR1"),
        ((b"a li", b"ne\nan", b"other\n"), b"a line\nan"),
        ((b"\x89PNG\r\n", b"\x1a\n"), b"\x89PNG\r\n\x1a\n"),
        ((b"a" * HEAD_BYTES, b"b"), b"a" * HEAD_BYTES),
    ],
)
def test_it_goes_on_until_the_format_can_be_told(pieces: tuple[bytes, ...], read: bytes) -> None:
    buffer = bytearray(2 * HEAD_BYTES)
    assert first_read(giving(*pieces), buffer) == len(read)
    assert buffer[: len(read)] == read


def test_a_small_buffer_is_enough() -> None:
    buffer = bytearray(2)
    assert first_read(giving(b"P", b"A", b"R1"), buffer) == 2
    assert bytes(buffer) == b"PA"


def test_standard_input_is_read_from_where_it_is_and_stays_open() -> None:
    inner = io.BufferedReader(io.BytesIO(b"the first and the rest"))  # type: ignore[arg-type]
    inner.read(4)
    piped = io.BufferedReader(PipedInput(inner))
    assert piped.read() == b"first and the rest"
    piped.close()
    assert not inner.closed
