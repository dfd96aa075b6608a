"""Sketches are stored beside rows, in the order of rows, wherever rows are, and read for few."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sections import SECTION, flip, section

import simindex
from simindex import Batch, IndexOptions, Recipe
from simindex.errors import CorruptFile, InvalidBatch, InvalidOption, RecipeMismatch
from simindex.records.sketches import packed, size_codes
from simindex.repair.rebuild import repair
from simindex.storage.files.checksums import section_of
from simindex.storage.tables import sketches
from simindex.storage.tables.record import SegmentFolder
from simindex.storage.tables.segment import open_segment

ROWS, WORDS = 20_000, 3
RECORD = 8 * WORDS + 1
"""A sketch of 25 bytes: some lie in two chunks."""


def sketch_of(fingerprints: Any) -> np.ndarray:
    """A sketch that says whose it is."""
    words = np.asarray(fingerprints, np.uint64).reshape(-1, 1)
    with np.errstate(over="ignore"):
        return (words + np.arange(1, WORDS + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)


def features_of(fingerprints: Any) -> np.ndarray:
    """A number of features that says whose it is, 0 for some."""
    return (np.asarray(fingerprints, np.uint64).reshape(-1) % np.uint64(997)).astype(np.int64)


def records_of(fingerprints: Any) -> np.ndarray:
    """Sketches with their sizes, as files have them."""
    return packed(sketch_of(fingerprints), size_codes(features_of(fingerprints)))


def size_by_hand(features: int) -> int:
    """The code whose number is nearest by the ratio; there is none for 0."""
    if not features:
        return 0
    return min(range(1, 256), key=lambda code: abs((code - 1) / 8 - math.log2(features)))


def batch(words: Any, *, keys: bool) -> Batch:
    rows = np.asarray(words, np.uint64)
    named: dict[str, Any] = {"keys": list(map(str, rows.tolist()))} if keys else {"ids": rows}
    return Batch(rows, sketch=sketch_of(rows), features=features_of(rows), **named)


@pytest.fixture(params=[False, True], ids=["ids", "keys"])
def keyed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def filled(index_path: Path, rng: np.random.Generator, keyed: bool) -> Path:
    """One segment that was merged, and ten rows that are pending."""
    options = IndexOptions(sketch_bits=64 * WORDS, batch_rows=1 << 16, keys=keyed)
    order = rng.permutation(ROWS).astype(np.uint64)
    with simindex.open(index_path, "n", options=options) as index:
        for first in range(0, ROWS, 4000):
            index.append(batch(order[first : first + 4000], keys=keyed))
        index.commit()
        index.compact(full=True)
        index.append(batch(np.arange(1 << 40, (1 << 40) + 10), keys=keyed))
    return index_path


def everything() -> set[int]:
    return {*range(ROWS), *range(1 << 40, (1 << 40) + 10)}


def stored(path: Path) -> set[int]:
    """The fingerprints of an index, each of whose rows has its own sketch."""
    found = set()
    with simindex.open(path) as index:
        for table in index._current().tables:
            assert table.sketches is not None
            words = np.asarray(table.fingerprints)[:, 0]
            assert np.array_equal(np.asarray(table.sketches), records_of(words))
            found |= set(words.tolist())
        rows = 0
        for part in index.rows(chunk_rows=999):
            assert np.array_equal(part.sketch, sketch_of(part.rows))
            assert np.array_equal(part.sketches, records_of(part.rows))
            rows += len(part)
        assert rows == len(index)
        assert [one for one in index.check() if one.severity == "error"] == []
    return found


def test_each_row_has_its_sketch(filled: Path) -> None:
    assert stored(filled) == everything()


def test_the_file_has_the_sketches_in_the_order_of_its_rows(filled: Path) -> None:
    file, start, end = section(filled, sketches.SKETCHES)
    assert end - start == RECORD * ROWS
    found = np.frombuffer(file.read_bytes(), np.uint8, ROWS * RECORD, start).reshape(-1, RECORD)
    words = np.ascontiguousarray(found[:, :-1]).view("<u8")
    assert np.array_equal(words, sketch_of(np.arange(ROWS)))
    expected = [size_by_hand(number % 997) for number in range(ROWS)]
    assert found[:, -1].tolist() == expected


@pytest.mark.parametrize("times", [False, True], ids=["plain", "times"])
@pytest.mark.slow
def test_rows_keep_their_sketches_through_all_that_changes_an_index(
    index_path: Path, rng: np.random.Generator, keyed: bool, times: bool
) -> None:
    """Spilled, pending and merged; deleted, replaced and added one at a time; wide rows, too."""
    options = IndexOptions(
        sketch_bits=64 * WORDS, batch_rows=64, keys=keyed, times=times, min_merge=3
    )
    expected: set[int] = set()
    with simindex.open(index_path, "n", options=options) as index:
        for number in range(40):
            words = rng.integers(0, 1 << 62, int(rng.integers(1, 90)), dtype=np.uint64)
            index.append(batch(words, keys=keyed))
            expected |= set(words.tolist())
            gone = rng.choice(sorted(expected), 3, replace=False).astype(np.uint64)
            if number % 3 == 0:
                names = {"keys": list(map(str, gone.tolist()))} if keyed else {"ids": gone}
                index.delete(**names)
                expected -= set(gone.tolist())
            elif number % 3 == 1:
                index.replace(batch(gone, keys=keyed))
            else:
                one = rng.integers(0, 1 << 62, 1, dtype=np.uint64)
                assert index.seen_or_add(batch(one, keys=keyed), h=0, commit_s=None) is None
                expected |= set(one.tolist())
                got = index.get(str(one[0]) if keyed else int(one[0]))
                assert np.array_equal(got.sketches, records_of(one))
            if number % 4 == 0:
                index.commit()
        index.ingest(batch([7, 1 << 50], keys=keyed), h=0)
        expected |= {7, 1 << 50}
    with simindex.open(index_path) as index:
        held = {row for part in index.rows() for row in part.rows[:, 0].tolist()}
    assert held == expected
    assert stored(index_path) >= expected
    with simindex.open(index_path, "w") as index:
        index.compact(full=True)
    assert stored(index_path) == expected


def test_a_recipe_brings_its_sketch_into_a_new_index(index_path: Path) -> None:
    """Also where it comes with the first batch, in one piece or one document at a time."""
    recipe = Recipe(sketch_bits=128)
    texts = [f"text number {number} about {number * number} things" for number in range(20)]
    made = recipe.batch(texts)

    def held(index: simindex.Index) -> dict[int, list[int]]:
        parts = list(index.rows())
        return {
            int(word): row for part in parts
            for word, row in zip(part.rows[:, 0], part.sketch.tolist(), strict=True)
        }

    expected = dict(zip(made.fingerprints.tolist(), made.sketch.tolist(), strict=True))
    for options in (IndexOptions(recipe=recipe), IndexOptions()):
        with simindex.open(index_path, "n", options=options, overwrite=True) as index:
            index.append(made)
            index.commit()
            assert index.options.sketch_bits == 128
            assert held(index) == expected
        with simindex.open(index_path, "n", options=options, overwrite=True) as index:
            for text in texts:
                index.seen_or_add(recipe.batch([text]), h=0)
        with simindex.open(index_path, "c", options=options) as index:
            assert held(index) == expected
            assert index.recipe == recipe
        with simindex.open(index_path, "n", options=options, overwrite=True) as index:
            index.ingest(made, h=0)
            index.discard()
            assert held(index) == expected


def test_what_was_not_committed_decides_nothing(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        index.append(batch([1], keys=False))
        assert index._handle.writer.committer.options.sketch_bits == 64 * WORDS
        index.discard()
        index.append(np.arange(3, dtype=np.uint64))
        index.commit()
        assert index.options.sketch_bits == 0
        with pytest.raises(InvalidBatch, match="stores none"):
            index.append(batch([1], keys=False))


def test_sketches_of_another_width_are_refused(index_path: Path) -> None:
    options = IndexOptions(sketch_bits=128)
    rows = np.arange(2, dtype=np.uint64)
    with simindex.open(index_path, "n", options=options) as index:
        for wrong in (Batch(rows), Batch(rows, sketch=rows)):
            one = [lambda batch: index.seen_or_add(batch.take(rows[:1]))]
            for call in (index.append, index.ingest, *one):
                with pytest.raises(InvalidBatch, match="128") as caught:
                    call(wrong)
                assert "sketch" in str(caught.value.remedy)
        with pytest.raises(InvalidBatch, match="no sketches"):
            index.append(rows)
        index.append(rows[:0])
        assert len(index) == 0
    other = index_path.with_name("other.sim")
    with (
        simindex.open(other, "n", options=IndexOptions(recipe=Recipe())) as index,
        pytest.raises(RecipeMismatch, match="bits of a sketch 128 instead of 0"),
    ):
        index.append(Recipe(sketch_bits=128).batch(["a text"]))
    for recipe, bits in ((Recipe(sketch_bits=64), 128), (Recipe(), 64)):
        with pytest.raises(InvalidOption, match="sketch_bits"):
            IndexOptions(recipe=recipe, sketch_bits=bits)
    for wrong_bits in (-64, 65, 4160, True, None, "64"):
        with pytest.raises(InvalidOption, match="sketch_bits"):
            IndexOptions(sketch_bits=wrong_bits)
    assert IndexOptions(recipe=Recipe(sketch_bits=64)).sketch_bits == 64


def test_an_index_with_other_sketches_is_told_apart(index_path: Path) -> None:
    with simindex.open(index_path, "n", options=IndexOptions(sketch_bits=64)):
        pass
    simindex.open(index_path, "c", options=IndexOptions()).close()
    simindex.open(index_path, "c", options=IndexOptions(sketch_bits=64)).close()
    with pytest.raises(InvalidOption, match="sketch_bits"):
        simindex.open(index_path, "c", options=IndexOptions(sketch_bits=128))


def test_nothing_is_stored_where_there_is_no_sketch(index_path: Path) -> None:
    """An index without sketches has the sections and options that it had before there were any."""
    with simindex.open(index_path, "n", options=IndexOptions(batch_rows=8)) as index:
        index.append(np.arange(9, dtype=np.uint64))
        index.commit()
        tables = index._current().tables
        assert all(table.sketches is None for table in tables)
        assert "sketch_bits" not in index.options.to_dict()
        assert next(iter(index.rows())).sketch is None
    for file in (index_path / "segments").glob("*.rows"):
        raw = file.read_bytes()
        table = np.frombuffer(raw, SECTION, int.from_bytes(raw[28:32], "little"), 104)
        assert table["kind"].tolist() == [1, 2, 5]


def test_no_query_reads_a_sketch_and_a_candidate_s_is_read_alone(filled: Path) -> None:
    with simindex.open(filled) as index:
        segment = index._current().segments[0]
        assert segment.sketches is not None
        section_ = section_of(segment.sketches)
        assert section_ is not None
        chunks = section_.left
        assert chunks == -(-RECORD * ROWS // (1 << 16)) > 5
        assert len(index.query(np.arange(100, dtype=np.uint64), h=1))
        assert section_.left == chunks
        found = sketches.sketches_at(segment, np.array([5, 3, 5]))
        assert np.array_equal(found, records_of([5, 3, 5]))
        assert section_.left == chunks - 1
        straddling = np.array([(1 << 16) // RECORD])
        assert np.array_equal(sketches.sketches_at(segment, straddling), records_of(straddling))
        assert section_.left == chunks - 2
        assert sketches.sketches_at(segment, np.array([], np.int64)).shape == (0, RECORD)


@pytest.mark.parametrize("offset", [40, RECORD - 1], ids=["bits", "size"])
def test_a_damaged_sketch_is_an_error_where_it_is_read(filled: Path, offset: int) -> None:
    file, start, _ = section(filled, sketches.SKETCHES)
    flip(file, start + offset)
    with simindex.open(filled) as index:
        segment = index._current().segments[0]
        assert len(index.query(np.arange(4, dtype=np.uint64), h=0)) == 4
        with pytest.raises(CorruptFile, match=file.name):
            index.query(batch([0], keys=False), similarity=0.99, measure="jaccard")
        with pytest.raises(CorruptFile, match=file.name):
            sketches.sketches_at(segment, np.array([0]))
        last = np.array([ROWS - 1])
        assert np.array_equal(sketches.sketches_at(segment, last), records_of(last))
        assert any("damaged" in finding.what for finding in index.check())
        with pytest.raises(CorruptFile, match=file.name):
            list(index.rows())
    with simindex.open(filled, "w") as index, pytest.raises(CorruptFile, match=file.name):
        index.compact(full=True, structures=("psm",))
        index.append(batch([1 << 60], keys=index.options.keyed))
        index.commit()
        index.compact(full=True)


def test_repair_gives_up_rows_whose_sketch_is_damaged(filled: Path) -> None:
    file, start, _ = section(filled, sketches.SKETCHES)
    flip(file, start + 40)
    lost = -(-(1 << 16) // RECORD)
    report = repair(filled, apply=True)
    assert (report.lost_rows, report.remaining) == (lost, ())
    assert stored(filled) == everything() - set(range(lost))


@pytest.mark.parametrize("gone", ["catalog", "header", "description"])
@pytest.mark.slow
def test_repair_recovers_sketches(filled: Path, gone: str) -> None:
    pending = set(range(1 << 40, (1 << 40) + 10))
    if gone == "catalog":
        (filled / "catalog" / "data.mdb").unlink()
    else:
        file, start, _ = section(filled, 5)
        flip(file, 50 if gone == "header" else start)
    report = repair(filled, apply=True)
    assert report.remaining == ()
    assert stored(filled) == everything() - (pending if gone == "catalog" else set())


def test_repair_sorts_rows_with_their_sketches(
    index_path: Path, keyed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segment that was written out of order, with right checksums."""
    from simindex.storage.tables import segment

    options = IndexOptions(sketch_bits=64 * WORDS, batch_rows=64, keys=keyed, structures=("psm",))
    write = segment.SegmentWriter.write

    def backwards(self: Any, fingerprints: Any, ids: Any, keys: Any, times: Any, rows: Any) -> None:
        turned = np.arange(len(ids))[::-1].copy()
        write(
            self, fingerprints[turned], ids[turned], None if keys is None else keys.take(turned),
            times, rows[turned],
        )

    with simindex.open(index_path, "n", options=options) as index:
        monkeypatch.setattr(segment.SegmentWriter, "write", backwards)
        monkeypatch.setattr(
            "simindex.storage.tables.sorted_rows.SortedRows.compute_directory",
            lambda table: np.array([0] * (1 << table.header_bits) + [len(table)], np.uint32),
        )
        index.append(batch(range(64), keys=keyed))
        index.commit()
    monkeypatch.undo()
    assert repair(index_path, apply=True).remaining == ()
    assert stored(index_path) == set(range(64))


def test_a_backup_has_the_sketches(filled: Path, keyed: bool) -> None:
    copy = filled.with_name("copy.sim")
    with simindex.open(filled, "w") as index:
        index.backup(copy)
        index.append(batch([1 << 50], keys=keyed))
        index.commit()
        index.backup(copy)
    assert stored(copy) == everything() | {1 << 50}


@pytest.mark.parametrize("wanted", [0, WORDS - 1, WORDS])
def test_options_and_files_agree(index_path: Path, wanted: int) -> None:
    has = 0 if wanted == WORDS else WORDS
    options = IndexOptions(sketch_bits=64 * has, batch_rows=8)
    with simindex.open(index_path, "n", options=options) as index:
        rows = np.arange(9, dtype=np.uint64)
        index.append(batch(rows, keys=False) if has else rows)
        index.commit()
        segment = index._current().segments[0]
        own = segment.envelope.identity.index
        folder = SegmentFolder(index_path / "segments", own, 64, False, sketch_words=wanted)
        with pytest.raises(CorruptFile, match=r"sketches|item size"):
            open_segment(folder, segment.record, lambda: None)


def test_memory_of_a_merge_is_bounded_by_words_of_sketches_too(
    filled: Path, monkeypatch: pytest.MonkeyPatch, keyed: bool
) -> None:
    from simindex.storage.tables import compaction

    monkeypatch.setattr(compaction, "WINDOW_ROWS", 4000)
    sizes: list[int] = []
    once = compaction.MergedRows._block

    def counted(self: Any, place: int, start: int, stop: int) -> Any:
        sizes.append(stop - start)
        return once(self, place, start, stop)

    monkeypatch.setattr(compaction.MergedRows, "_block", counted)
    with simindex.open(filled, "w") as index:
        index.append(batch(range(1 << 50, (1 << 50) + 9000), keys=keyed))
        index.commit()
        index.compact(full=True)
    assert max(map(sum, pairwise(sizes))) <= 4000 // (2 + WORDS) < sum(sizes)
    assert len(stored(filled)) == ROWS + 9010


def test_documents_with_weights_and_without_keep_their_sketches(index_path: Path) -> None:
    """Those that were added one at a time come into the index in two portions."""
    words = np.arange(9, dtype=np.uint64)
    with simindex.open(index_path, "n") as index:
        for word in words:
            weights = np.ones((1, 64), np.float32) if word % 3 else None
            one = Batch(
                [int(word)], sketch=sketch_of([word]), features=features_of([word]),
                weights=weights,
            )
            assert index.seen_or_add(one, h=0, commit_s=None) is None
    assert stored(index_path) == set(words.tolist())
