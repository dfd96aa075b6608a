"""`Index.query`, `pairs` and `clusters` refused a radius or a number of bytes that came from numpy:
"h=np.int64(3) is not a valid distance: give a whole number". `find_all`, `top` and `limit` took
it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import IndexOptions
from simindex.distributed import Shards

FINGERPRINTS = np.array([1, 2, 3, 1 << 40], np.uint64)
CALLS: dict[str, Callable[[simindex.Index, Any], Any]] = {
    "query": lambda index, as_: index.query(
        FINGERPRINTS, h=as_(3), threads=as_(1), memory_limit=as_(1 << 30)
    ),
    "query within a memory": lambda index, as_: index.query(FINGERPRINTS, memory=as_(1 << 30)),
    "stream": lambda index, as_: next(index.query_stream(FINGERPRINTS, h=as_(3))),
    "explain": lambda index, as_: index.explain(FINGERPRINTS, h=as_(3)) and None,
    "pairs": lambda index, as_: next(index.pairs(h=as_(2), memory_limit=as_(1 << 30))),
    "clusters": lambda index, as_: index.clusters(h=as_(2), memory_limit=as_(1 << 30)),
    "gate": lambda index, as_: index.gate(FINGERPRINTS, h=as_(2), max_matches=as_(9)).matches,
    "ingest": lambda index, as_: index.ingest(FINGERPRINTS, h=as_(1)),
    "audit": lambda index, as_: index.audit(h=as_(2), sample=as_(10)) and None,
    "gate by a share": lambda index, as_: index.gate(FINGERPRINTS, h=2, max_share=as_(1)).matches,
    "seen_or_add": lambda index, as_: index.seen_or_add(
        simindex.Batch([7]), h=as_(2), commit_s=as_(5)
    ),
    "rows": lambda index, as_: [len(part) for part in index.rows(chunk_rows=as_(3))],
    "find_clusters": lambda index, as_: simindex.find_clusters(FINGERPRINTS, h=as_(2)),
}


def plain(found: Any) -> Any:
    return list(found) if hasattr(found, "__iter__") else found


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_a_number_of_numpy_is_a_number(
    tmp_path: Path, call: Callable[[simindex.Index, Any], Any]
) -> None:
    found = []
    for kind in (int, np.int64, np.uint32):
        with simindex.open(tmp_path / kind.__name__, "n", wait_s=kind(0)) as index:
            index.append(FINGERPRINTS)
            index.commit()
            found.append(plain(call(index, kind)))
    assert found[0] == found[1] == found[2]


def test_options_and_shards_take_numbers_of_numpy(tmp_path: Path) -> None:
    options = IndexOptions(
        bits=np.int64(128), batch_rows=np.uint32(64), min_merge=np.int8(4), sketch_bits=np.int64(64)
    )
    assert options == IndexOptions(bits=128, batch_rows=64, min_merge=4, sketch_bits=64)
    assert {type(options.bits), type(options.batch_rows), type(options.min_merge)} == {int}
    shards = Shards.build(tmp_path / "s", FINGERPRINTS, 2)
    assert len(shards.query(FINGERPRINTS[:1], h=np.int64(2))) == 4  # type: ignore[arg-type]
    assert shards.clusters(h=np.int64(2)).clusters == 1  # type: ignore[arg-type]
