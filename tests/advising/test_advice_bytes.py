"""A recommendation as the catalog keeps it."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import msgpack
import pytest

from simindex import Advice, IndexOptions
from simindex.advising.advice_bytes import decode, encode
from simindex.errors import CorruptFile
from simindex.repair.check import require_usable

ADVICE = Advice(
    similarity=0.9, recall=0.95, precision=0.9, features="64 bits of word 1, tf", sketch_bits=512,
    h=10, ask_similarity=0.88, ask_recall=0.57, misses=0.04, misses_low=0.03, misses_high=0.05,
    strangers=0.02, strangers_low=0.01, strangers_high=0.03, reached=True, documents=100, pairs=50,
    recipe="00",
)


def test_what_is_stored_is_read() -> None:
    for advice in (ADVICE, replace(ADVICE, sketch_bits=0, ask_similarity=None, ask_recall=None)):
        assert decode(encode(advice)) == advice
        require_usable("advice", encode(advice), IndexOptions())
    assert ADVICE.arguments == {"similarity": 0.88, "recall": 0.57}


@pytest.mark.parametrize("payload", [
    b"", b"\xc1", msgpack.packb([1]), msgpack.packb({"h": 3}),
    msgpack.packb({**asdict(ADVICE), "h": "3"}), msgpack.packb({**asdict(ADVICE), "more": 1}),
    msgpack.packb({**asdict(ADVICE), "misses": float("nan")}),
])
def test_anything_else_is_damage(payload: Any) -> None:
    with pytest.raises(CorruptFile):
        decode(payload)
    with pytest.raises(CorruptFile, match="meta/advice"):
        require_usable("advice", payload, IndexOptions())
