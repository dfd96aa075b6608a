"""Arguments of calls and options as text: any values of any type, out of bytes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import simindex
from fuzzing.envelopes import BPHS, example
from fuzzing.target import Target
from simindex import Batch, IndexOptions, Recipe
from simindex.bits.design import BlockDesign
from simindex.options import split_structures

WORDS = (
    "auto", "psm", "bphs", "issl", "scan", BPHS, "bphs:nested=4x4,r=1", "issl:w=8", "str", "bytes",
    "word", "char", "tf", "tfidf", "sign", "gaussian", "en", "english", "", "\0", "\ud800", "n",
)
NUMBERS = (
    0, 1, 2, 3, 8, 63, 64, 65, 128, 4096, 4097, -1, 1 << 20, 1 << 31, 1 << 32, (1 << 63) - 1,
    1 << 63, 1 << 64, -(1 << 63), 10**40, 0.0, 0.5, 0.95, 1.0, 1.5, -0.0, float("inf"),
    float("nan"), 1e-300,
)
DTYPES = ("u8", "i8", "u4", "f4", "f8", "?", "O", "U3", "S3", ">u8")


class _Bytes:
    """Choices out of bytes; those that are not there are 0."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, below: int) -> int:
        self._at += 1
        return self._data[self._at - 1] % below if self._at <= len(self._data) else 0

    def text(self) -> str:
        size = self.take(24)
        piece = self._data[self._at : self._at + size]
        self._at += size
        return piece.decode("utf-8", "replace")

    def value(self, depth: int = 0) -> Any:
        match self.take(16):
            case 0 | 1 | 2:
                return NUMBERS[self.take(len(NUMBERS))]
            case 3 | 4 | 5:
                return WORDS[self.take(len(WORDS))]
            case 6:
                return self.text()
            case 7:
                return self.text().encode()
            case 8:
                return (None, True, False, ...)[self.take(4)]
            case 9 if depth < 2:
                return [self.value(depth + 1) for _ in range(self.take(4))]
            case 10 if depth < 2:
                return tuple(self.value(depth + 1) for _ in range(self.take(4)))
            case 11 if depth < 2:
                return {self.text(): self.value(depth + 1) for _ in range(self.take(3))}
            case _:
                return self.array()

    def array(self) -> Any:
        shape = tuple(
            (0, 1, 2, 3, 16, 64)[self.take(6)] for _ in range((1, 1, 2, 2, 0, 3)[self.take(6)])
        )
        made = np.zeros(shape, DTYPES[self.take(len(DTYPES))])
        if made.size and made.dtype.kind in "uif":
            made.reshape(-1)[0] = self.take(256)
        return made[::2] if self.take(8) == 7 and made.ndim else made

    def options(self, names: tuple[str, ...]) -> dict[str, Any]:
        return {
            names[self.take(len(names))]: self.value() for _ in range(self.take(4))
        }


QUERY = ("h", "first", "recall", "method", "memory", "memory_limit", "threads")
TOP = ("k", "max_error", "rerank", "method", "recall", "threads")
PAIRS = ("h", "method", "memory_limit", "collapse_equal", "threads")
CLUSTERS = ("h", "mode", "singletons", "memory_limit", "threads")
OPTIONS = (
    "bits", "structures", "batch_rows", "keys", "min_merge", "reservoir_rows", "slice_memory",
    "allow_remote", "recipe", "key_secret",
)
RECIPE = (
    "bits", "unit", "ngram", "weighting", "seed", "min_features", "projection", "tokenizer",
    "stop_words", "stemmer",
)
BATCH = ("ids", "keys", "weights")


@cache
def _index() -> simindex.Index:
    return simindex.open(example(64, False))


def _queries(given: _Bytes) -> Any:
    if given.take(2):
        return np.array([given.take(256), 1 << 63], np.uint64)
    if given.take(2):
        return Batch(given.array(), **given.options(BATCH))
    return given.value()


def _threads(options: dict[str, Any]) -> dict[str, Any]:
    # A call may have thousands of threads if it asks for them; here it shall not take so long.
    value = options.get("threads")
    return {**options, "threads": 2} if isinstance(value, int) and value > 2 else options


CALLS: tuple[Callable[[_Bytes], object], ...] = (
    lambda given: _index().query(_queries(given), **_threads(given.options(QUERY))),
    lambda given: _index().top(_queries(given), **_threads(given.options(TOP))),
    lambda given: _index().explain(
        _queries(given), **given.options(("h", "recall", "method", "memory"))
    ),
    lambda given: list(_index().pairs(**_threads(given.options(PAIRS)))),
    lambda given: _index().clusters(**_threads(given.options(CLUSTERS))),
    lambda given: Batch(given.value(), **given.options(BATCH)),
    lambda given: IndexOptions(**given.options(OPTIONS)),
    lambda given: Recipe(**given.options(RECIPE)),
    lambda given: Recipe(**given.options(RECIPE)).batch(given.value()),
    lambda given: split_structures(given.text()),
    lambda given: BlockDesign.parse(given.text(), int(NUMBERS[given.take(10)])),
)


def seeds() -> list[bytes]:
    """Each call with arguments that suit, or nearly."""
    some = [bytes([call, 1, 5, 2, 0, 0, 3]) for call in range(len(CALLS))]
    return [*some, b"\x09\x0ebphs:G=5,g=2,r", b"\x0a\x10bphs:nested=4x4 ", bytes(range(40))]


def execute(data: bytes) -> None:
    """Makes one call."""
    given = _Bytes(data)
    CALLS[given.take(len(CALLS))](given)


TARGET = Target("arguments", seeds, execute)
