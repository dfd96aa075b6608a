"""Tables of answers without a row had keys of text where the keys of the index are bytes: of `top`
without queries or with texts without a fingerprint, and of all calls of a collection of shards.
Such a table could not be put together with those of other answers.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simindex import Batch, Index, IndexOptions, Recipe, open
from simindex.distributed import Shards
from simindex.query.arrangement import joined

pa = pytest.importorskip("pyarrow")

TEXTS = [f"the ferry to island {at} leaves the harbour every morning at {at}" for at in range(6)]


def types(table: Any) -> dict[str, str]:
    return {field.name: str(field.type) for field in pa.table(table).schema}


@pytest.fixture(params=["str", "bytes"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def batch(kind: str) -> Batch:
    names = [f"page {at}" for at in range(len(TEXTS))]
    return Recipe().batch(TEXTS, keys=names if kind == "str" else [name.encode() for name in names])


@pytest.fixture
def index(tmp_path: Path, batch: Batch, kind: str) -> Iterator[Index]:
    with open(tmp_path / "a.sim", "n", options=IndexOptions(keys=kind)) as index:  # type: ignore[arg-type]
        index.append(batch)
        index.commit()
        yield index


@pytest.fixture(params=[1, 3])
def shards(request: pytest.FixtureRequest, tmp_path: Path, batch: Batch) -> Shards:
    return Shards.build(tmp_path / "a.shards", batch, int(request.param))


def none_of(batch: Batch) -> Batch:
    return batch.take(np.arange(0))


def test_nearest_of_an_index(index: Index, batch: Batch) -> None:
    found = types(index.top(batch, k=2))
    for asked in (none_of(batch), [""], ["", " "]):
        answer = index.top(asked, k=2)
        sent = pickle.loads(pickle.dumps(answer))  # noqa: S301
        assert len(answer) == len(sent) == 0
        assert types(answer) == types(answer[:0]) == types(sent) == found


def test_nothing_of_answers_that_were_joined(index: Index, batch: Batch) -> None:
    answers = [index.query(batch, h=64), index.query(batch, h=64)]
    assert types(joined(answers)[:0]) == types(joined(answers)) == types(answers[0])


Call = Callable[[Shards, Batch, int], Any]

CALLS: dict[str, Call] = {
    "query": lambda shards, batch, h: shards.query(batch, h=h),
    "limit": lambda shards, batch, h: shards.query(batch, h=h, limit=1),
    "top": lambda shards, batch, h: shards.top(batch, k=2),
    "pairs": lambda shards, batch, h: next(iter(shards.pairs(h=h))),
    "groups": lambda shards, batch, h: next(iter(shards.pairs(h=h, collapse_equal=True))).groups,
    "clusters": lambda shards, batch, h: shards.clusters(h=h, singletons=False),
}


@pytest.mark.parametrize("call", CALLS)
def test_answers_of_shards(shards: Shards, batch: Batch, kind: str, call: str) -> None:
    keys = {"large_binary" if kind == "bytes" else "large_string"}
    for asked, h in ((batch, 64), (none_of(batch), 0), (Batch([5]), 0)):
        answer = types(CALLS[call](shards, asked, h))
        assert {found for name, found in answer.items() if name.endswith("key")} == keys
