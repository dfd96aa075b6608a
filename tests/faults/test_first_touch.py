"""One flipped bit anywhere in a segment's files: CorruptFile or the right answer, by every method.

Each file of two small indexes is damaged in each of its chunks, and everything is asked of an
index that is opened anew. Answers are held to the oracle's; what is approximate, and so has no
other right answer, to its own of the whole index.
"""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import damaged
import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import CorruptFile, InvalidOption
from simindex.planning import registry
from simindex.storage.files.checksums import section_of

ROWS = {1: 14_000, 2: 7_000}
DESIGN = "bphs:G=4,g=1"
H = 2

Ask = Callable[[simindex.Index, "Stored"], Any]


@dataclass(repr=False)
class Stored:
    """An index, what it holds, and what is asked of it."""

    path: Path
    model: oracle.Model
    queries: oracle.U64
    weights: oracle.F32
    many: oracle.U64
    keyed: bool
    expected: dict[str, Any]

    def __repr__(self) -> str:
        return f"what is stored at {self.path}"


def _named(found: simindex.Matches, keyed: bool) -> list[tuple[int, int, Any]]:
    names = found.keys() if keyed else found.id.tolist()
    assert names is not None
    return sorted(zip(found.query.tolist(), found.distance.tolist(), names, strict=True))


def _by(method: str, **options: Any) -> Ask:
    def ask(index: simindex.Index, of: Stored) -> Any:
        return _named(index.query(of.queries, h=H, method=method, **options), of.keyed)

    return ask


def _weighted(index: simindex.Index, of: Stored) -> Any:
    batch = Batch(of.queries, weights=of.weights)
    return _named(index.query(batch, h=H, recall=0.9, method="psm"), of.keyed)


def _first(index: simindex.Index, of: Stored) -> Any:
    """Which of several matches is given is not promised: that it is one, and where there is any."""
    found = _named(index.query(of.queries, h=H, first=True), of.keyed)
    assert set(found) <= set(of.model.query(of.queries, H))
    return [query for query, *_ in found]


def _many(index: simindex.Index, of: Stored) -> Any:
    return _named(index.query(of.many, h=H, threads=2), of.keyed)


def _limited(method: str) -> Ask:
    def ask(index: simindex.Index, of: Stored) -> Any:
        found = index.query(of.many, h=H, method=method, memory_limit=64 << 20)
        return _named(found, of.keyed)

    return ask


def _top(**options: Any) -> Ask:
    def ask(index: simindex.Index, of: Stored) -> Any:
        found = index.top(of.queries, k=3, threads=2, **options)
        return found.id.tolist(), found.distance.tolist(), found.keys()

    return ask


def _pairs(index: simindex.Index, of: Stored) -> Any:
    found = [
        (a, b, distance) for pairs in index.pairs(h=H, threads=2)
        for a, b, distance in zip(
            pairs.a.tolist(), pairs.b.tolist(), pairs.distance.tolist(), strict=True
        )
    ]
    return sorted(found)


def _clusters(index: simindex.Index, of: Stored) -> Any:
    found = index.clusters(h=H)
    return found.id.tolist(), found.cluster.tolist(), found.distance.tolist()


def _rows(index: simindex.Index, of: Stored) -> Any:
    found = Counter[Any]()
    for batch in index.rows(chunk_rows=60):
        names = batch.keys if of.keyed else batch.ids
        assert names is not None
        rows = map(tuple, oracle.as_words(batch.fingerprints).tolist())
        found.update(zip(rows, list(names), strict=True))
        if of.keyed:
            assert np.array_equal(batch.sketch, sketch_of(batch.rows))
            assert np.array_equal(batch.sizes, sizes_of(batch.rows))
    return len(index), found


def sketch_of(rows: oracle.U64) -> oracle.U64:
    """Three words that say whose they are."""
    return rows[:, :1] * np.array([1, 3, 0x9E3779B97F4A7C15], np.uint64)


def sizes_of(rows: oracle.U64) -> oracle.I64:
    """Numbers of features that say whose they are: powers of two, which a byte has exactly."""
    return np.int64(1) << (rows[:, 0] % np.uint64(31)).astype(np.int64)


ASKS: dict[str, Ask] = {
    **{method: _by(method) for method in registry.names()},
    "weighted": _weighted, "first": _first, "many": _many,
    "limited": _limited("scan"), "over queries": _limited("bphs"),
    "top": _top(), "top by lists": _top(method="issl", max_error=1),
    "pairs": _pairs, "clusters": _clusters, "rows": _rows,
}
OF_STRUCTURES = ("auto", "bphs", "issl", "top by lists")
BY_THE_ORACLE = registry.names()


def _build(path: Path, words: int) -> Stored:
    """Two segments with repeated ids, pending and deleted rows, and near-duplicates."""
    rng = np.random.default_rng(words)
    keyed, rows = words == 2, ROWS[words]
    made = oracle.skewed(rng, rows, words, templates=rows // 2)
    made[rows // 2 : rows // 2 + 500] = oracle.flip(rng, made[:500], 1)
    names: list[Any] = rng.integers(0, rows - 200, rows).tolist()
    if keyed:
        names = [f"page {name}/" + "x" * (name % 40) for name in names]
    gone = [names[at] for at in rng.integers(0, rows - 300, 100)]
    model = oracle.Model()
    options = IndexOptions(
        bits=64 * words, structures=("psm", DESIGN, "issl:w=8"), batch_rows=rows, min_merge=0,
        keys="str" if keyed else False, sketch_bits=192 if keyed else 0,
    )
    with simindex.open(path, "n", options=options) as index:
        for first, last in pairwise((0, rows * 3 // 4, rows - 100, rows)):
            part = slice(first, last)
            said: dict[str, Any] = {"keys" if keyed else "ids": names[part]}
            if keyed:
                said |= {"sketch": sketch_of(made[part]), "features": sizes_of(made[part])}
            index.append(Batch(made[part], **said))
            model.append(made[part], names[part])
            index.commit()
            model.commit()
        if keyed:  # the other has none, whose masks would read all ids at once
            index.delete(keys=gone)
            model.delete(gone)
            model.commit()
    queries = oracle.flip(rng, made[rng.integers(0, rows, 40)], rng.integers(0, 3, 40))
    weights = np.where(oracle_bits(queries), 1, -1).astype(np.float32)
    weights *= rng.random(weights.shape, np.float32) + np.float32(0.1)
    many = made[rng.integers(0, rows, 1500)]
    stored = Stored(path, model, queries, weights, many, keyed, {})
    with simindex.open(path, verify="never") as index:
        snapshot = index._handle.view.last()
        assert len(snapshot.segments) == 2 and len(snapshot.pending) == 1
        stored.expected = {name: ask(index, stored) for name, ask in ASKS.items()}
    truth = model.query(queries, H)
    for name in BY_THE_ORACLE:
        assert stored.expected[name] == truth
    assert stored.expected["first"] == sorted({query for query, *_ in truth})
    assert stored.expected["many"] == model.query(many, H)
    assert stored.expected["limited"] == stored.expected["over queries"] == stored.expected["many"]
    assert stored.expected["rows"] == (
        len(model), Counter((row.words, row.name) for row in model.rows)
    )
    return stored


def oracle_bits(rows: oracle.U64) -> Any:
    """(m, b): the bits of fingerprints, bit 63 of word 0 first."""
    return np.unpackbits(rows.astype(">u8").view(np.uint8), axis=1)


@pytest.fixture(scope="module", params=[1, 2], ids=["64 bits", "128 bits with keys"])
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    return _build(tmp_path_factory.mktemp("touched") / "index", request.param)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.getLogger("simindex").setLevel(logging.ERROR)
    yield
    logging.getLogger("simindex").setLevel(logging.NOTSET)


def outcome(of: Stored, name: str, file: Path) -> str:
    """What is asked by that name of the index, opened anew: "right" or "refused"."""
    try:
        with simindex.open(of.path) as index:
            found = ASKS[name](index, of)
    except CorruptFile as error:
        assert error.data["path"] == str(file)
        if "within" in str(error):  # what to do
            assert ("restore" if file.suffix == ".rows" else "compact --structures") in str(error)
        return "refused"
    assert found == of.expected[name], name
    return "right"


def test_the_chunks_of_each_file(stored: Stored) -> None:
    """All of the rows, and every other one of a structure. Every ask is refused for what it has to
    read: the rows, or the structure it names.
    """
    seen = Counter[tuple[str, str]]()
    rng = np.random.default_rng(3)
    for suffix in (".rows", ".bphs", ".issl"):
        for file in damaged.files(stored.path, suffix):
            begun = set[int]()
            step = 1 if suffix == ".rows" else 2
            for kind, offset, size in list(damaged.chunks(file))[::step]:
                # Structures have many chunks, and most asks read none of them.
                asks = OF_STRUCTURES if kind in begun and suffix != ".rows" else tuple(ASKS)
                begun.add(kind)
                with damaged.flipped(file, offset + int(rng.integers(size)), int(rng.integers(8))):
                    for name in asks:
                        found = outcome(stored, name, file)
                        seen[f"{suffix} {kind}", f"{name}: {found}"] += 1
    for name in ASKS:
        assert seen[".rows 1", f"{name}: refused"] >= 2, name
        assert seen[".rows 2", f"{name}: refused"] >= 1, name
    for place, name in (
        (".bphs 1", "bphs"), (".issl 1", "issl"), (".issl 1", "top by lists"), (".issl 2", "issl"),
    ):
        assert seen[place, f"{name}: refused"] >= 2, (place, name)
    if stored.keyed:
        for name in ("scan", "psm", "bphs", "issl", "many", "limited", "top", "rows"):
            assert seen[".rows 3", f"{name}: refused"] >= 1, name
            assert seen[".rows 4", f"{name}: refused"] >= 1, name
        assert seen[".rows 9", "rows: refused"] >= 2
        for name in set(ASKS) - {"rows"}:  # which read no sketch
            assert seen[".rows 9", f"{name}: refused"] == 0, name
    for structure in (".bphs 1", ".issl 1", ".issl 2"):
        for name in set(ASKS) - set(OF_STRUCTURES) | {"auto"}:
            assert seen[structure, f"{name}: refused"] == 0, (structure, name)
            assert seen[structure, f"{name}: right"] >= 2, (structure, name)


@settings(max_examples=40)
@given(
    suffix=st.sampled_from((".rows", ".bphs", ".issl")), number=st.integers(0, 1),
    place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7),
    asked=st.lists(st.sampled_from(sorted(ASKS)), min_size=3, max_size=3, unique=True),
)
def test_any_bit(
    stored: Stored, suffix: str, number: int, place: float, bit: int, asked: list[str]
) -> None:
    """Of the whole file: header, table, padding, checksums and footer too."""
    file = damaged.files(stored.path, suffix)[number]
    with damaged.flipped(file, int(place * file.stat().st_size), bit):
        for name in asked:
            outcome(stored, name, file)


def test_ingest_is_refused_or_right(stored: Stored, tmp_path: Path) -> None:
    """And what is refused is not appended."""
    rng = np.random.default_rng(9)
    own: list[Any] = list(range(10**6, 10**6 + len(stored.queries)))
    if stored.keyed:
        own = [f"new {name}" for name in own]
    truth = stored.model.query(stored.queries, H)
    copy = tmp_path / "copy"
    refused = 0
    sketch = sketch_of(stored.queries) if stored.keyed else None
    for _, offset, size in damaged.chunks(damaged.files(stored.path, ".rows")[0]):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(stored.path, copy)
        with (
            damaged.flipped(damaged.files(copy, ".rows")[0], offset + int(rng.integers(size))),
            simindex.open(copy, "w") as index,
        ):
            stored_rows = index._handle.view.last().stored_rows
            said: dict[str, Any] = {"keys" if stored.keyed else "ids": own}
            try:
                matches = index.ingest(Batch(stored.queries, sketch=sketch, **said), h=H)
            except CorruptFile:
                refused += 1
                index.commit()
                assert index._handle.view.last().stored_rows == stored_rows
                continue
            try:  # keys are read when they are asked for
                found = _named(matches, stored.keyed)
                assert [match for match in found if match[2] not in set(own)] == truth
            except CorruptFile:
                assert stored.keyed
    assert refused >= 2


# -- structures that are left ----------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".bphs", ".issl"])
def test_auto_leaves_a_damaged_structure_and_says_so(
    stored: Stored, suffix: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once found, it is not planned with again; asked for by name, it is refused each time."""
    logging.getLogger("simindex").setLevel(logging.WARNING)
    method = {".bphs": "bphs", ".issl": "issl"}[suffix]
    # The planner takes the structure, whatever it costs.
    for name in ("permuted_plans.permuted_ns", "table_plans.issl_within_ns"):
        monkeypatch.setattr(f"simindex.planning.{name}", lambda *_, **__: 0.0)
    if suffix == ".issl":
        monkeypatch.setattr("simindex.planning.permuted_plans.permuted_ns", lambda *_, **__: 1e12)
    file = damaged.files(stored.path, suffix)[0]
    _, offset, size = next(damaged.chunks(file))
    with damaged.flipped(file, offset + size // 2), simindex.open(stored.path) as index:
        some = range(0, len(stored.many), 50)
        for start in some:
            rows = stored.many[start : start + 50]
            truth = stored.model.query(rows, H)
            assert _named(index.query(rows, h=H), stored.keyed) == truth
        told = [record.message for record in caplog.records if file.name in record.message]
        assert told and all("compact --structures" in line for line in told)
        assert index.query(rows, h=H).stats.method != method
        for _ in range(2):
            with pytest.raises(CorruptFile, match=file.name):
                index.query(stored.many, h=H, method=method)
        (found,) = index.check()
        assert found.path == str(file)


# -- when it is verified ---------------------------------------------------------------------------


def _left(index: simindex.Index) -> list[int | None]:
    tables = index._handle.view.last().segments
    sections = [section_of(table.fingerprints) for table in tables]
    return [None if section is None else section.left for section in sections]


def test_marks_live_as_long_as_the_mapping(stored: Stored, tmp_path: Path) -> None:
    """Snapshots share them, another handle has its own, and no more is read than is asked for."""
    chunks = [-(-table.fingerprints.nbytes // (1 << 16)) for table in _segments(stored)]
    with simindex.open(stored.path) as index, simindex.open(stored.path) as other:
        assert _left(index) == chunks
        index.query(stored.queries[:1], h=0, method="psm")
        assert [a - b for a, b in zip(chunks, _left(index), strict=True)] == [1, 1]
        index.query(stored.queries[:1], h=0, method="scan")
        assert _left(index) == [0, 0]
        assert _left(other) == chunks
        before = index._handle.view.last().segments
        with simindex.open(stored.path, "w") as writer:
            writer.delete(**{"keys" if stored.keyed else "ids": ["none"] if stored.keyed else [0]})
            writer.commit()
            assert index.refresh()
            assert index._handle.view.last().segments[0] is before[0]
            assert _left(index) == [0, 0]


def _segments(of: Stored) -> tuple[Any, ...]:
    with simindex.open(of.path) as index:
        return index._handle.view.last().segments


def test_verify_when_opened_or_never(stored: Stored) -> None:
    file = damaged.files(stored.path, ".rows")[0]
    lists = damaged.files(stored.path, ".issl")[0]
    with simindex.open(stored.path, verify="open") as index:
        assert _left(index) == [0, 0]
    with damaged.flipped(file, 4096 + 3):
        with pytest.raises(CorruptFile, match=file.name):
            simindex.open(stored.path, verify="open")
        with simindex.open(stored.path, verify="never") as index:
            assert _left(index) == [None, None]
            index.query(stored.queries, h=H, method="scan")
    with damaged.flipped(lists, 4096 + 3), simindex.open(stored.path, verify="open") as index:
        assert _named(index.query(stored.queries, h=H), stored.keyed) == stored.expected["auto"]
        with pytest.raises(CorruptFile, match=lists.name):
            index.query(stored.queries[:1], h=0, method="issl")


def test_verify_is_one_of_three(tmp_path: Path) -> None:
    for verify in ("always", None, True):
        with pytest.raises(InvalidOption, match="lazy, open or never"):
            simindex.open(tmp_path / "x", "c", verify=verify)  # type: ignore[arg-type]
    assert not (tmp_path / "x").exists()
