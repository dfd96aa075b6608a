"""A sealed value is the one that was stored, under its own key."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.errors import CorruptFile
from simindex.storage.catalog.sealed_values import seal, unpack, unseal


@given(payload=st.binary(max_size=40), bit=st.integers(0, 1000))
def test_every_flipped_bit_of_a_sealed_value_is_noticed(payload: bytes, bit: int) -> None:
    value = bytearray(seal("meta", b"key", payload))
    assert unseal("meta", b"key", bytes(value)) == payload
    bit %= 8 * len(value)
    value[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CorruptFile):
        unseal("meta", b"key", bytes(value))


def test_value_of_another_key_or_database_is_noticed() -> None:
    value = seal("meta", b"key", b"payload")
    for database, key in (("meta", b"other"), ("pending", b"key"), ("met", b"akey")):
        with pytest.raises(CorruptFile, match="damaged"):
            unseal(database, key, value)


@pytest.mark.parametrize("value", [None, b"", b"\0", b"\0\0\0", b"\0\0\0\0"])
def test_missing_or_short_value_is_noticed(value: bytes | None) -> None:
    with pytest.raises(CorruptFile):
        unseal("meta", b"key", value)


def test_value_of_an_older_commit_is_noticed() -> None:
    older = seal("meta", b"key", b"old")
    newer = int.from_bytes(seal("meta", b"key", b"new")[-4:], "little")
    with pytest.raises(CorruptFile, match="not the one that its head names"):
        unseal("meta", b"key", older, newer)


@pytest.mark.parametrize(
    "payload",
    [
        b"", b"\xc1", b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\x91" * 5000,
        msgpack.packb(msgpack.ExtType(5, b"x")), msgpack.packb({1: 2}), b"\xc0\xc0",
    ],
    ids=lambda p: p[:6].hex(),
)
def test_hostile_msgpack_is_refused(payload: bytes) -> None:
    with pytest.raises(CorruptFile):
        unpack("x", payload)
