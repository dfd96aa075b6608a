"""What the catalog gives back is what was put there under that key by the head's own commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import lmdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex.errors import CommitFailed, CorruptFile, StorageFailed, StorageFull
from simindex.storage.catalog.catalog import Catalog, Edit
from simindex.storage.catalog.environment import Transaction
from simindex.storage.catalog.leases import acquire
from simindex.storage.catalog.records import LAST_GENERATION, Head, Run
from simindex.storage.catalog.sealed_values import PART_BYTES, PARTED, pack, seal
from simindex.storage.tables.record import SegmentRecord, StructureRecord

U64 = st.integers(0, 2**63)
NAMES = st.integers(0, 2**64 - 1).map(lambda n: f"{n:016x}-{n & 0xFFFFFFFF:08x}.rows")
CRCS = st.integers(0, 2**32 - 1)
RUNS = st.lists(st.builds(Run, U64, U64, U64, CRCS, st.just("")), max_size=5).map(tuple)
TOMBSTONES = st.lists(
    st.builds(Run, U64, U64, U64, CRCS, NAMES.map(lambda name: name[:-4] + "dead") | st.just("")),
    max_size=5, unique_by=lambda run: run.file or run.number,
).map(tuple)
HEADS = st.builds(
    Head, st.integers(0, LAST_GENERATION - 1), U64, U64,
    st.dictionaries(NAMES, st.integers(0, 2**32 - 1), max_size=5), RUNS, TOMBSTONES,
    st.dictionaries(st.text(max_size=9), st.integers(0, 2**32 - 1), max_size=4),
).filter(lambda head: len({run.number for run in (*head.pending, *head.tombstones)}) == len(
    (*head.pending, *head.tombstones)
))


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """A catalog with an empty head."""
    (tmp_path / "catalog").mkdir()
    with acquire(tmp_path / "catalog", writable=True, create=True) as environment:
        made = Catalog(environment)
        made.commit(Edit(b"", Head(0, 0, 0)))
        yield made


def edit_of(catalog: Catalog) -> Edit:
    with catalog.reading() as reading:
        return Edit(*reading.head())


def overwrite(catalog: Catalog, database: str, key: bytes, value: bytes | None) -> None:
    """Changes a stored value behind the catalog's back."""
    with catalog.environment.transaction(write=True) as txn:
        if value is None:
            txn.delete(database, key)
        else:
            txn.put(database, key, value)
        txn.commit()


def stored(catalog: Catalog, database: str, key: bytes) -> bytes:
    with catalog.environment.transaction() as txn:
        value = txn.get(database, key)
    assert value is not None
    return value


# -- seals and heads ------------------------------------------------------------------------------


@given(head=HEADS)
@pytest.mark.slow
def test_head_decodes_to_what_was_encoded(head: Head) -> None:
    assert Head.decode(head.encode()) == head


@settings(max_examples=300)
@given(payload=st.binary(max_size=60))
def test_bytes_that_are_no_head_are_noticed(payload: bytes) -> None:
    with pytest.raises(CorruptFile):
        Head.decode(payload)


PARTS = [1, [0, 0, 0], [], [], [], []]


@pytest.mark.parametrize(
    "value",
    [
        [], 7, None, "head", {}, [*PARTS, 1], [2, *PARTS[1:]], [1, [0, 0], *PARTS[2:]],
        [1, [0, 0, "x"], *PARTS[2:]], [1, [0, 0, 0], [["../../etc/passwd", 1]], [], [], []],
        [1, [0, 0, 0], [["0000000000000001-00000001.rows/x", 1]], [], [], []],
        [1, [0, 0, 0], [["a"]], [], [], []], [1, [0, 0, 0], [], [[1, 2, 3]], [], []],
        [1, [0, 0, 0], [], [], [[1, 2, 3, 4, 5]], []], [1, [0, 0, 0], [], [7], [], []],
        [1, [0, 0, 0], [[5, 1]], [], [], []], [1, [-1, 0, 0], *PARTS[2:]],
        [1, [0, 0, 0], [], [[-1, 0, 0, 0]], [], []],
        [1, [0, 0, 0], [], [[2**64 - 1, 0, -5, 0]], [], []],
    ],
    ids=str,
)
def test_head_of_another_shape_is_noticed(value: Any) -> None:
    with pytest.raises(CorruptFile):
        Head.decode(pack(value))


# -- values, runs and parts -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "size", [0, 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES, 5 * PART_BYTES + 7]
)
def test_values_and_runs_of_any_size_read_back(catalog: Catalog, size: int) -> None:
    payload = np.random.default_rng(size).bytes(size)
    edit = edit_of(catalog)
    edit.set_value("recipe", payload)
    edit.add_rows(3)
    runs = [edit.add_run("pending", payload, 3), edit.add_run("tombstones", payload, 4)]
    catalog.commit(edit)
    with catalog.reading() as reading:
        _, head = reading.head()
        assert reading.value(head, "recipe") == payload
        assert reading.value(head, "none") is None
        assert head.pending == (runs[0],)
        assert head.tombstones == (runs[1],)
        for database, run in zip(("pending", "tombstones"), runs, strict=True):
            assert reading.run(database, run) == payload


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("damage", ["flip", "missing", "older", "swapped", "cut"])
def test_damaged_part_of_a_value_is_noticed(catalog: Catalog, part: int, damage: str) -> None:
    rng = np.random.default_rng(part)
    payloads = [rng.bytes(3 * PART_BYTES + 100) for _ in range(2)]
    edit = edit_of(catalog)
    edit.set_value("recipe", payloads[0])
    catalog.commit(edit)

    def key_of(number: int) -> bytes:
        return b"recipe" + (number.to_bytes(4, "big") if number else b"")

    key = key_of(part)
    older = stored(catalog, "meta", key)
    edit = edit_of(catalog)
    edit.set_value("recipe", payloads[1])
    catalog.commit(edit)
    value = bytearray(stored(catalog, "meta", key))
    if damage == "flip":
        value[len(value) // 2] ^= 8
    elif damage == "cut":
        del value[-9:]
    elif damage == "older":
        value = bytearray(older)
    elif damage == "swapped":
        value = bytearray(stored(catalog, "meta", key_of((part + 1) % 3)))
    overwrite(catalog, "meta", key, None if damage == "missing" else bytes(value))
    with catalog.reading() as reading, pytest.raises(CorruptFile):
        reading.value(reading.head()[1], "recipe")


def test_replaced_and_dropped_values_leave_no_part_behind(catalog: Catalog) -> None:
    for size in (5 * PART_BYTES, 1, 3 * PART_BYTES):
        edit = edit_of(catalog)
        edit.set_value("recipe", bytes(size))
        edit.deletions = 1
        for run in edit.head.pending:
            edit.drop_pending(run, run.rows)
        edit.add_rows(1)
        edit.add_run("pending", bytes(size), 1)
        catalog.commit(edit)
    for database, parts in (("meta", 3), ("pending", 3)):
        with catalog.environment._env.begin() as txn:
            db = catalog.environment._databases[database]
            assert txn.stat(db)["entries"] == parts


def test_space_of_old_values_is_used_again(catalog: Catalog) -> None:
    """Runs come and go with every commit; the file must not keep them all."""
    rng = np.random.default_rng(0)
    peak = 0
    for step in range(120):
        edit = edit_of(catalog)
        edit.add_rows(1)
        if len(edit.head.pending) == 7:
            edit.deletions = 7
            for run in edit.head.pending:
                edit.drop_pending(run, run.rows)
        edit.add_run("pending", rng.bytes(int(rng.integers(10, 3 * PART_BYTES))), 1)
        catalog.commit(edit)
        if step == 30:
            peak = (catalog.path / "data.mdb").stat().st_size
    assert (catalog.path / "data.mdb").stat().st_size < 3 * peak


def test_segments_come_and_go_with_their_directories(catalog: Catalog) -> None:
    record = SegmentRecord("0000000000000001-00000009.rows", 5, 1, 4242, 77, 16)
    directory = np.linspace(0, 5, (1 << 16) + 1).astype(np.uint32)
    edit = edit_of(catalog)
    edit.add_rows(5)
    edit.add_segment(record, [(0, directory)])
    catalog.commit(edit)
    with catalog.reading() as reading:
        _, head = reading.head()
        assert reading.segment(head, record.name) == record
        assert np.array_equal(reading.directory(record), directory)
    edit = edit_of(catalog)
    edit.deletions, edit.dead[record.name] = 1, 5
    edit.drop_segment(record)
    catalog.commit(edit)
    with catalog.environment._env.begin() as txn:
        for database in ("headers", "segments"):
            assert txn.stat(catalog.environment._databases[database])["entries"] == 0


def test_structures_come_and_go_with_their_directories(catalog: Catalog) -> None:
    def structure(name: str, own: str, first: int, bits: tuple[int, ...]) -> StructureRecord:
        file = f"0000000000000001-00000009-{own}.bphs"
        return StructureRecord(name, file, 7, 8, first, bits)

    def directory(bits: int, rows: int = 5) -> Any:
        return np.linspace(0, rows, (1 << bits) + 1).astype(np.uint32)

    def entries() -> int:
        with catalog.environment._env.begin() as txn:
            found: int = txn.stat(catalog.environment._databases["headers"])["entries"]
        return found

    bare = SegmentRecord("0000000000000001-00000009.rows", 5, 1, 4242, 77, 2)
    one = structure("bphs:G=3,g=1", "0000000a", 1, (3, 17))
    two = structure("bphs:G=2,g=1", "0000000b", 1, (4,))
    with_one, with_two = replace(bare, structures=(one,)), replace(bare, structures=(two,))
    edit = edit_of(catalog)
    edit.add_rows(5)
    edit.add_segment(with_one, [(0, directory(2)), (1, directory(3)), (2, directory(17))])
    catalog.commit(edit)
    assert entries() == 1 + 1 + 4
    edit = edit_of(catalog)  # another structure takes the numbers of the one that goes
    edit.change_structures(with_one, with_two, [(1, directory(4))])
    catalog.commit(edit)
    assert entries() == 1 + 1
    with catalog.reading() as reading:
        _, head = reading.head()
        assert reading.segment(head, bare.name) == with_two
        assert np.array_equal(reading.directory(with_two, 1), directory(4))
    edit = edit_of(catalog)
    edit.deletions, edit.dead[bare.name] = 1, 5
    edit.drop_segment(with_two)
    catalog.commit(edit)
    assert entries() == 0


@pytest.mark.parametrize(
    "structures",
    [
        9, [9], [["bphs:G=2,g=1", "x.bphs", 1, 2, 1, [3]]],
        [["bphs:G=2,g=1", "0000000000000001-00000008-00000001.bphs", 1, 2, 1, [3]]],
        [["bphs:G=2,g=1", "0000000000000001-00000009-00000001.bphs", 1, 2, 0, [3]]],
        [["bphs:G=2,g=1", "0000000000000001-00000009-00000001.bphs", 1, 2, 1 << 16, [3]]],
        [["bphs:G=2,g=1", "0000000000000001-00000009-00000001.bphs", 1, -2, 1, [3]]],
        [["bphs:G=2,g=1", "0000000000000001-00000009-00000001.bphs", 1, 2, 1, [33]]],
        [["bphs:G=2,g=1", "0000000000000001-00000009-00000001.bphs", 1, 2, 1, [3]]] * 2,
    ],
)
def test_structures_of_another_shape_are_noticed(catalog: Catalog, structures: Any) -> None:
    name = "0000000000000001-00000009.rows"
    sealed = seal("segments", name.encode(), pack([5, 1, 4242, 77, 2, structures]))
    overwrite(catalog, "segments", name.encode(), sealed)
    head = Head(0, 0, 0, {name: int.from_bytes(sealed[-4:], "little")})
    with catalog.reading() as reading, pytest.raises(CorruptFile, match="not complete"):
        reading.segment(head, name)


@pytest.mark.parametrize(
    "value", [[1, 2, 3, 4], [1, 2, 3, 4, 33], [1, 2, 3, 4, -1], ["x", 2, 3, 4, 5], 9]
)
def test_segment_record_of_another_shape_is_noticed(catalog: Catalog, value: Any) -> None:
    name = "0000000000000001-00000009.rows"
    sealed = seal("segments", name.encode(), pack(value))
    overwrite(catalog, "segments", name.encode(), sealed)
    head = Head(0, 0, 0, {name: int.from_bytes(sealed[-4:], "little")})
    with catalog.reading() as reading, pytest.raises(CorruptFile):
        reading.segment(head, name)


# -- commits --------------------------------------------------------------------------------------


def test_commit_gives_the_head_as_it_is_stored(catalog: Catalog) -> None:
    """So a writer knows its own commit without reading it again."""
    edit = edit_of(catalog)
    edit.add_rows(3)
    edit.withdrawn = 3
    edit.deletions = 1
    sealed = catalog.commit(edit)
    assert sealed.value == catalog.head_value()
    with catalog.reading() as reading:
        assert reading.head() == sealed


def test_edit_of_a_head_that_has_changed_is_refused(catalog: Catalog) -> None:
    first, second = edit_of(catalog), edit_of(catalog)
    for edit, rows in ((first, 1), (second, 2)):
        edit.add_rows(rows)
        edit.add_run("pending", b"", rows)
    catalog.commit(first)
    with pytest.raises(CommitFailed, match="another writer"):
        catalog.commit(second)
    with catalog.reading() as reading:
        assert reading.head()[1].appended == 1


# -- no row is lost -------------------------------------------------------------------------------

OLD = [
    SegmentRecord(f"0000000000000001-0000000{number}.rows", rows, 1, 4242, 77, 0)
    for number, rows in enumerate((5, 7))
]
NEW = SegmentRecord("0000000000000002-00000009.rows", 10, 2, 4242, 77, 0)


@pytest.fixture
def stocked(catalog: Catalog) -> Catalog:
    """Segments of five and seven rows, three pending rows, and a deletion after all of them."""
    edit = edit_of(catalog)
    edit.add_rows(15)
    for record in OLD:
        edit.add_segment(record, [])
    edit.add_run("pending", b"", 3)
    catalog.commit(edit)
    edit = edit_of(catalog)
    edit.add_run("tombstones", b"", 1)
    catalog.commit(edit)
    return catalog


def merging(edit: Edit, merged: SegmentRecord | None, dead: Sequence[int]) -> None:
    edit.merge_segments(
        OLD, merged, [], {record.name: rows for record, rows in zip(OLD, dead, strict=False)}
    )


@pytest.mark.parametrize(
    ("change", "kept", "expected"),
    [
        (lambda edit: merging(edit, None, ()), 0, 12),
        (lambda edit: merging(edit, None, (5,)), 0, 7),
        (lambda edit: merging(edit, NEW, (1,)), 10, 11),
        (lambda edit: merging(edit, NEW, (1, 2)), 10, 9),
        (lambda edit: merging(edit, NEW, (-5, 7)), 10, 5),
        (lambda edit: merging(edit, NEW, (6, 1)), 10, 11),
        (lambda edit: edit.drop_segment(OLD[0]), 0, 5),
        (lambda edit: edit.drop_run("pending", edit.head.pending[0]), 0, 3),
        (lambda edit: edit.drop_pending(edit.head.pending[0], 2), 0, 1),
        (lambda edit: edit.add_rows(4), 0, 4),
        (lambda edit: edit.add_segment(NEW, []), 10, 0),
        (lambda edit: edit.add_run("pending", b"", 2), 2, 0),
        (lambda edit: edit.change_structures(OLD[0], replace(OLD[0], rows=4), []), 4, 5),
    ],
)
def test_commit_that_would_lose_a_row_is_refused(
    stocked: Catalog, change: Callable[[Edit], None], kept: int, expected: int
) -> None:
    """Or that would bring in one which nobody has appended."""
    before = stocked.head_value()
    edit = edit_of(stocked)
    change(edit)
    with pytest.raises(CommitFailed, match=f"kept {kept} of {expected} rows: it was refused"):
        stocked.commit(edit)
    assert stocked.head_value() == before
    assert not edit.begun


@pytest.mark.parametrize(
    "change",
    [
        lambda edit: merging(edit, NEW, (2, 0)),
        lambda edit: merging(edit, None, (5, 7)),
        lambda edit: edit.drop_pending(edit.head.pending[0], 3),
        lambda edit: edit.change_structures(OLD[0], OLD[0], []),
    ],
)
def test_commit_that_accounts_for_every_row_is_made(
    stocked: Catalog, change: Callable[[Edit], None]
) -> None:
    edit = edit_of(stocked)
    change(edit)
    assert stocked.commit(edit).head.generation == 4


def test_rows_that_no_later_deletion_concerns_are_not_dead(catalog: Catalog) -> None:
    edit = edit_of(catalog)
    edit.add_run("tombstones", b"", 9)
    edit.add_rows(5)
    record = replace(OLD[0], horizon=2)
    edit.add_segment(record, [])
    catalog.commit(edit)
    edit = edit_of(catalog)
    edit.dead[record.name] = 5
    edit.drop_segment(record)
    with pytest.raises(CommitFailed, match="kept 0 of 5 rows"):
        catalog.commit(edit)


def test_stale_head_is_whole_and_names_what_is_gone(catalog: Catalog) -> None:
    """A head of an older commit names checksums of older records: it cannot be mixed with newer."""
    edit = edit_of(catalog)
    edit.set_value("options", b"old")
    catalog.commit(edit)
    older = catalog.head_value()
    edit = edit_of(catalog)
    edit.set_value("options", b"new")
    catalog.commit(edit)
    overwrite(catalog, "head", b"head", older)
    with catalog.reading() as reading, pytest.raises(CorruptFile):
        reading.value(reading.head()[1], "options")


def test_missing_head_is_damage(catalog: Catalog) -> None:
    overwrite(catalog, "head", b"head", None)
    with catalog.reading() as reading, pytest.raises(CorruptFile):
        reading.head()


@pytest.mark.parametrize(
    ("method", "error", "seen"),
    [
        ("put", lmdb.MapFullError("full"), StorageFull),
        ("put", lmdb.DiskError("ENOSPC"), StorageFull),
        ("put", OSError(28, "no space"), StorageFull),
        ("put", lmdb.CorruptedError("page"), CorruptFile),
        ("delete", lmdb.PageNotFoundError("page"), CorruptFile),
        ("put", lmdb.BadTxnError("invalid"), StorageFailed),
        ("put", OSError(5, "EIO"), OSError),
        ("commit", lmdb.MapFullError("full"), StorageFull),
        ("commit", lmdb.DiskError("ENOSPC"), CommitFailed),
        ("commit", lmdb.Error("Input/output error"), CommitFailed),
        ("commit", OSError(5, "EIO"), CommitFailed),
    ],
)
def test_failed_commit_is_typed_and_changes_nothing(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, method: str, error: Exception,
    seen: type[Exception],
) -> None:
    before = catalog.head_value()

    def fail(self: Transaction, *arguments: Any) -> None:
        raise error

    edit = edit_of(catalog)
    edit.set_value("options", b"x")
    with monkeypatch.context() as patch, pytest.raises(seen):
        patch.setattr(Transaction, method, fail)
        catalog.commit(edit)
    assert catalog.head_value() == before
    again = edit_of(catalog)
    again.set_value("options", b"x")
    catalog.commit(again)
    assert catalog.head_value() != before


def test_full_map_of_lmdb_is_storage_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from simindex.storage.catalog import environment as environment_module

    monkeypatch.setattr(environment_module, "MAP_BYTES", 1 << 20)
    (tmp_path / "small").mkdir()
    lease = acquire(tmp_path / "small", writable=True, create=True)
    catalog = Catalog(lease.environment)
    catalog.commit(Edit(b"", Head(0, 0, 0)))
    before = catalog.head_value()
    edit = edit_of(catalog)
    edit.set_value("options", bytes(2 << 20))
    with pytest.raises(StorageFull, match="largest size"):
        catalog.commit(edit)
    assert catalog.head_value() == before
    edit = edit_of(catalog)
    edit.set_value("options", b"fits")
    catalog.commit(edit)
    lease.release()


def test_reading_is_one_view_while_commits_go_on(catalog: Catalog) -> None:
    with catalog.reading() as reading:
        value, _ = reading.head()
        edit = Edit(value, Head(0, 0, 0))
        edit.set_value("options", b"x")
        catalog.commit(edit)
        assert reading.head()[0] == value
    assert catalog.head_value() != value


def test_every_database_the_catalog_names_exists(catalog: Catalog) -> None:
    assert set(PARTED) < set(catalog.environment._databases)
