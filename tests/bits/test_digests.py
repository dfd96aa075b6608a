"""BLAKE2b and SHA-256 without `hashlib`."""

from __future__ import annotations

import hashlib

from simindex.bits.digests import blake2b, sha256


def test_digests_are_those_of_hashlib() -> None:
    for size in (8, 16, 32):
        ours, theirs = blake2b(b"one", digest_size=size), hashlib.blake2b(b"one", digest_size=size)
        ours.update(b" two")
        theirs.update(b" two")
        assert ours.digest() == theirs.digest()
    assert sha256(b"one").digest() == hashlib.sha256(b"one").digest()
