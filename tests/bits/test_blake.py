"""BLAKE2b without `hashlib`."""

from __future__ import annotations

import hashlib

from simindex.bits.blake import blake2b


def test_digests_are_those_of_hashlib() -> None:
    for size in (8, 16, 32):
        ours, theirs = blake2b(b"one", digest_size=size), hashlib.blake2b(b"one", digest_size=size)
        ours.update(b" two")
        theirs.update(b" two")
        assert ours.digest() == theirs.digest()
