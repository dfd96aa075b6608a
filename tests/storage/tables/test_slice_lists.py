"""Slice lists on disk are the segment's rows by slice and value, or they are refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Condition, RLock
from typing import Any

import damaged
import msgpack
import numpy as np
import oracle
import pytest
from damaged import flip_bit
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import simindex
from simindex import IndexOptions
from simindex.errors import CorruptFile, InvalidOption
from simindex.planning.machine import Machine
from simindex.storage import snapshot
from simindex.storage.catalog.catalog import Edit
from simindex.storage.files.envelope import HEADER, open_envelope
from simindex.storage.tables import slice_lists
from simindex.storage.tables.record import SegmentFolder, SegmentRecord, StructureRecord
from simindex.storage.tables.slice_lists import SliceDesign
from simindex.storage.tables.structure import DESCRIPTION, owner_of
from simindex.writing.merges import Merge, State

U32 = NDArray[np.uint32]
LISTS = "issl:w=8"
"""Small files: 257 starts a slice."""


def files(index: Path, suffix: str = ".issl") -> list[Path]:
    return damaged.files(index, suffix)


def fill(
    path: Path, structures: tuple[str, ...] = ("psm", LISTS), rows: int = 3000, bits: int = 128,
    **options: Any,
) -> oracle.U64:
    """Two segments of distinct and equal rows."""
    made = oracle.skewed(np.random.default_rng(5), rows, bits // 64, templates=40)
    made[:50] = made[50:100]
    chosen = IndexOptions(
        bits=bits, structures=structures, batch_rows=2000, min_merge=0, **options
    )
    with simindex.open(path, "n", options=chosen) as index:
        for part in np.array_split(made, 2):
            index.append(part)
            index.commit()
    return made


def slice_values(rows: oracle.U64, width: int) -> NDArray[np.int64]:
    """(n, s): the bits of each slice as a number, read bit by bit."""
    bits = np.unpackbits(rows.astype(">u8").view(np.uint8), axis=1).astype(np.int64)
    shape = (len(rows), rows.shape[1] * 64 // width, width)
    return bits.reshape(shape) @ (1 << np.arange(width - 1, -1, -1))


def expect_lists(starts: U32, numbers: U32, rows: oracle.U64, width: int) -> None:
    """Every list holds the rows that have its value, in order."""
    values = slice_values(rows, width)
    assert starts.shape == (values.shape[1], (1 << width) + 1)
    assert numbers.shape == (values.shape[1], len(rows))
    for number, own in enumerate(values.T):
        counts = np.bincount(own, minlength=1 << width)
        assert np.array_equal(starts[number], np.append(0, np.cumsum(counts)))
        assert np.array_equal(numbers[number], np.argsort(own, kind="stable"))


@pytest.mark.parametrize(
    ("structure", "bits", "width"),
    [("issl", 64, 8), ("issl", 128, 16), ("issl", 1024, 16), ("issl", 4096, 16),
     ("issl:w=16", 64, 16), ("issl:w=8", 4096, 8)],
)
@pytest.mark.slow
def test_segments_carry_the_lists_of_their_rows(
    index_path: Path, structure: str, bits: int, width: int
) -> None:
    fill(index_path, (structure,), 700, bits)
    with simindex.open(index_path) as index:
        assert index.options.structures == ("psm", structure)
        assert len(index._handle.view.last().segments) == 2
        for segment in index._handle.view.last().segments:
            lists = segment.slices
            assert lists is not None
            assert (lists.width, lists.slices) == (width, bits // width)
            expect_lists(lists.starts, lists.numbers, segment.fingerprints, width)
            assert not lists.starts.flags.writeable and not lists.numbers.flags.writeable
        assert index.check() == []
        held = index.stats()
        assert held.structures[structure] == sum(f.stat().st_size for f in files(index_path))
        first = files(index_path)[0]
        assert held.segment_list[0]["structures"] == {structure: first.stat().st_size}


@pytest.mark.slow
def test_memory_is_that_of_the_formula(index_path: Path) -> None:
    """[ISSL] section 3: 4 (n s + 2^w s) bytes, and 4 s for where the last lists end."""
    fill(index_path, ("issl",), 40_000, 256, reservoir_rows=0)
    with simindex.open(index_path) as index:
        for segment in index._handle.view.last().segments:
            assert segment.slices is not None
            size = 4 * (len(segment) * 16 + 2**16 * 16) + 4 * 16
            assert segment.slices.design.list_bytes(len(segment)) == size
            beside = 4096 * 4 + size // 65_536 * 4 + 4096
            assert size <= segment.slices.record.file_bytes <= size + beside


def test_pending_rows_and_other_segments_have_none(tmp_path: Path, index_path: Path) -> None:
    fill(tmp_path / "other", ("psm",))
    with simindex.open(tmp_path / "other", "w") as index:
        index.append(np.zeros((1, 2), np.uint64))
        index.commit()
        assert [table.slices for table in index._handle.view.last().tables] == [None, None, None]
    options = IndexOptions(bits=128, structures=("issl",))
    with simindex.open(index_path, "n", options=options) as index:
        index.append(np.zeros((1, 2), np.uint64))
        index.commit()
        assert files(index_path) == []
        assert [table.slices for table in index._handle.view.last().tables] == [None]
        index.compact(full=True)  # a row in a segment, whatever its number
        (segment,) = index._handle.view.last().segments
        assert segment.slices is not None
        expect_lists(segment.slices.starts, segment.slices.numbers, segment.fingerprints, 16)
        assert index.check() == []


@pytest.mark.parametrize("structures", [("issl",), ("psm", "bphs:G=2,g=1", "issl:w=16")])
@pytest.mark.slow
def test_every_query_goes_on_by_other_methods(
    index_path: Path, structures: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simindex.planning.measurement.measure", lambda file: Machine())
    made = fill(index_path, structures, 900)
    with simindex.open(index_path, "w") as index:
        model = oracle.Model()
        model.append(made, list(range(len(made))))
        model.commit()
        for method in ("auto", "psm", "scan"):
            assert named(index.query(made[:60], h=3, method=method)) == model.query(made[:60], 3)
        assert index.explain(made[:5], h=3).exact
        assert index.query(made[:5], memory=1 << 20).stats.exact
        assert index.query(made[:5], memory_limit=1 << 26).stats.exact
        assert len(index.clusters(h=3).id) == len(made)
        index.tune()
        assert index.check() == []


def named(found: simindex.Matches) -> list[tuple[int, int, Any]]:
    return sorted((match.query, match.distance, match.id) for match in found)


# -- building --------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    n=st.integers(0, 400), words=st.integers(1, 5), width=st.sampled_from([8, 16]),
    templates=st.sampled_from([1, 7, 400]), memory=st.integers(1, 1 << 20), seed=st.integers(0, 9),
)
@pytest.mark.slow
def test_however_little_memory_there_is_lists_are_the_same(
    n: int, words: int, width: int, templates: int, memory: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 2**64, (templates, words), np.uint64)[rng.integers(0, templates, n)]
    starts, numbers = collected(rows, SliceDesign.parse(f"issl:w={width}", words * 64), memory)
    expect_lists(starts, numbers, rows, width)


def collected(rows: oracle.U64, design: SliceDesign, memory: int) -> tuple[U32, U32]:
    starts, numbers = [], [np.empty(0, np.uint32)]
    for first, some, parts in slice_lists.lists(rows, design, memory):
        assert first == sum(map(len, starts))
        starts.append(some)
        numbers += [part.reshape(-1).copy() for part in parts]
    return np.concatenate(starts), np.concatenate(numbers).reshape(design.slices, len(rows))


@pytest.mark.parametrize("memory", [1 << 24, 1 << 21, 900_000])
def test_what_is_held_at_a_time_is_within_the_memory(memory: int) -> None:
    """Numbers, starts and blocks: also where they are those of a part of a slice."""
    rows = np.zeros((100_000, 4), np.uint64)  # a list of all rows is given in parts, too
    sizes = []
    for _, starts, parts in slice_lists.lists(rows, SliceDesign.parse("issl", 256), memory):
        sizes += [part.nbytes + starts.nbytes for part in parts]
    assert max(sizes) <= memory
    assert sum(sizes) >= 16 * rows.shape[0] * 4
    assert (len(sizes) > 16) == (memory < 1 << 21)


def test_segments_built_in_little_memory_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = fill(tmp_path / "a", ("issl",), 900)
    usual = slice_lists.lists
    monkeypatch.setattr(
        slice_lists, "lists", lambda rows, design, memory: usual(rows, design, 800_000)
    )
    assert np.array_equal(made, fill(tmp_path / "b", ("issl",), 900))
    with simindex.open(tmp_path / "a") as a, simindex.open(tmp_path / "b") as b:
        segments = [index._handle.view.last().segments for index in (a, b)]
        for one, other in zip(*segments, strict=True):
            assert one.slices is not None and other.slices is not None
            assert np.array_equal(one.slices.starts, other.slices.starts)
            assert np.array_equal(one.slices.numbers, other.slices.numbers)


@pytest.mark.parametrize("value", [0, -1, (1 << 24) - 1, (1 << 48) + 1, 1.5, True, "1G", None])
def test_memory_out_of_range_is_refused(value: Any) -> None:
    with pytest.raises(InvalidOption, match="slice_memory") as caught:
        IndexOptions(slice_memory=value)
    assert caught.value.data["option"] == "slice_memory"
    assert "16777216" in str(caught.value)


@pytest.mark.slow
def test_steps_are_as_many_as_are_told(tmp_path: Path) -> None:
    """A merge knows from them how far it is."""
    rows = np.zeros((50, 20), np.uint64)
    record = SegmentRecord("0000000000000001-00000009.rows", 50, 0, 1, 2, 4)
    for structure in ("issl", "issl:w=8"):
        for memory in (1, 3_000_000, 1 << 28):
            taken: list[int] = []
            design = SliceDesign.parse(structure, 1280)
            slice_lists.write(
                SegmentFolder(tmp_path, bytes(16), 1280, keyed=False), record, rows, design,
                generation=1, memory_bytes=memory, step=lambda taken=taken: taken.append(1),  # type: ignore[misc]
            )
            assert len(taken) == design.steps == 5


def test_a_step_that_raises_leaves_no_file(tmp_path: Path) -> None:
    record = SegmentRecord("0000000000000001-00000009.rows", 5, 0, 1, 2, 4)

    def step() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        slice_lists.write(
            SegmentFolder(tmp_path, bytes(16), 128, keyed=False), record,
            np.zeros((5, 2), np.uint64), SliceDesign.parse(LISTS, 128),
            generation=1, memory_bytes=1 << 24, step=step,
        )
    assert list(tmp_path.iterdir()) == []


def test_the_file_says_whose_it_is(index_path: Path) -> None:
    """A catalog can be rebuilt from segment files alone."""
    fill(index_path)
    for segment, file in zip(sorted(files(index_path, ".rows")), files(index_path), strict=True):
        envelope = open_envelope(file)
        description = envelope.section(DESCRIPTION, "u1")
        assert description is not None
        rows = open_envelope(segment)
        assert msgpack.unpackb(description.tobytes()) == [
            LISTS, segment.name, rows.footer_checksum
        ]
        assert owner_of(file.name) == segment.name
        assert envelope.identity.rows == rows.identity.rows
        assert envelope.identity.index == rows.identity.index
        assert (envelope.identity.bits, envelope.identity.horizon) == (
            rows.identity.bits, rows.identity.horizon
        )


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "structures",
    [("issl", "issl:w=16"), ("issl:w=8", "issl:w=16"), ("issl", "issl"), ("issl:w=32",),
     ("issl:w=",), ("issl:",), ("issl:w=8,x=1",), ("ISSL",), ("issl:w=08",), ("psm", "issl ")],
)
def test_names_that_are_none_are_refused(structures: tuple[str, ...]) -> None:
    with pytest.raises(InvalidOption, match="issl:w=8") as caught:
        IndexOptions(bits=128, structures=structures)
    assert caught.value.data["option"] == "structures"


def test_method_that_names_lists_is_no_method(index_path: Path) -> None:
    made = fill(index_path)
    with simindex.open(index_path) as index, pytest.raises(InvalidOption, match="method"):
        index.query(made[:2], method=LISTS)


def test_options_stored_before_there_were_lists_are_read() -> None:
    stored = IndexOptions(bits=128, structures=("psm",)).to_dict()
    del stored["slice_memory"]
    assert IndexOptions.from_dict(stored) == IndexOptions(bits=128, structures=("psm",))
    with pytest.raises(InvalidOption, match="slice_size"):
        IndexOptions.from_dict({**stored, "slice_size": 1})


# -- damage ----------------------------------------------------------------------------------------


def swap_bytes(path: Path) -> None:
    """As a machine of the other byte order would have written the tag."""
    data = bytearray(path.read_bytes())
    at = HEADER.fields["endian"][1]  # type: ignore[index]
    data[at : at + 4] = data[at : at + 4][::-1]
    path.write_bytes(data)


FOUND_WHEN_OPENED = {**damaged.FOUND_WHEN_OPENED, "byte order": swap_bytes}


@pytest.mark.parametrize("kind", FOUND_WHEN_OPENED)
def test_damaged_file_is_named_when_used_and_replaced(index_path: Path, kind: str) -> None:
    """Other methods still answer; building the structures again makes all well."""
    made = fill(index_path)
    before = files(index_path)
    FOUND_WHEN_OPENED[kind](before[0])
    with simindex.open(index_path) as index:
        assert len(index.query(made[:40], h=0)) >= 40
        nearest = index.top(made[:40], k=1)
        assert (nearest.stats.exact, nearest.distance.max()) == (True, 0)
        for ask in (partial(index.query, h=0), partial(index.top, k=1)):
            with pytest.raises(CorruptFile, match=before[0].name):
                ask(made[:2], method="issl")
        lists = index._handle.view.last().segments[0].slices
        assert lists is not None
        for part in ("starts", "numbers"):
            with pytest.raises(CorruptFile, match=before[0].name) as caught:
                getattr(lists, part)
            assert "compact --structures" in str(caught.value)
        if kind == "byte order":
            assert "little-endian" in str(caught.value)
        found = [f for f in index.check() if f.severity == "error"]
        assert found
        assert {Path(f.path).name for f in found} <= {path.name for path in before}
        index.stats()
    with simindex.open(index_path, "w") as index:
        index.compact(structures=(LISTS,))
        assert index.check() == []
        for segment in index._handle.view.last().segments:
            assert segment.slices is not None
            expect_lists(segment.slices.starts, segment.slices.numbers, segment.fingerprints, 8)
    assert len(files(index_path)) == 2
    assert before[0] not in files(index_path)


@pytest.mark.slow
def test_a_flipped_bit_in_any_section_is_found_by_check_and_repaired(index_path: Path) -> None:
    fill(index_path)
    first, second = files(index_path)
    starts_at = 4096 + -(-16 * 1500 * 4 // 4096) * 4096
    numbers_end, starts_end = 4096 + 16 * 1500 * 4, starts_at + 16 * 257 * 4
    for at in (4096, 4096 + 1500 * 4, numbers_end - 1, starts_at, starts_end - 1):
        kept = first.read_bytes()
        flip_bit(lambda size, at=at: at)(first)  # type: ignore[misc]
        with simindex.open(index_path) as index:
            (found,) = index.check()
            assert (found.severity, Path(found.path)) == ("error", first)
            assert "damaged" in found.what
            lists = index._handle.view.last().segments[0].slices
            assert lists is not None
            if at >= starts_at:
                with pytest.raises(CorruptFile, match=first.name):
                    lists.starts  # noqa: B018
            else:  # read by the kernel, which bounds what it follows
                assert lists.starts[0, -1] == 1500
        first.write_bytes(kept)
    flip_bit(lambda size: 5000)(first)
    with simindex.open(index_path, "w") as index:
        index.compact(structures=(LISTS,))
        assert index.check() == []
    left = files(index_path)
    assert second in left  # what is whole stays
    assert first not in left
    assert len(left) == 2


def test_starts_that_still_rise_are_held_to_their_checksums(index_path: Path) -> None:
    fill(index_path)
    with simindex.open(index_path) as index:
        lists = index._handle.view.last().segments[0].slices
        assert lists is not None
        file, sizes = index_path / "segments" / lists.record.name, np.diff(lists.starts[0])
        value = int(np.flatnonzero((sizes[1:] > 8) & (sizes[:-1] > 8))[0]) + 1
    at = 4096 + -(-16 * 1500 * 4 // 4096) * 4096 + 4 * value
    flip_bit(lambda size: at)(file)
    with simindex.open(index_path) as index:
        lists = index._handle.view.last().segments[0].slices
        assert lists is not None
        with pytest.raises(CorruptFile, match="damaged") as caught:
            lists.starts  # noqa: B018
        assert caught.value.data["path"] == str(file)


Tamper = Callable[[U32, U32], None]


def set_start(slice_: int, value: int, to: int) -> Tamper:
    def tamper(starts: U32, numbers: U32) -> None:
        starts[slice_, value] = to % (1 << 32)

    return tamper


def set_numbers(slice_: int, begin: int, *to: int) -> Tamper:
    def tamper(starts: U32, numbers: U32) -> None:
        numbers[slice_, begin : begin + len(to)] = to

    return tamper


def two_of_a_list_changed(starts: U32, numbers: U32) -> None:
    begin = int(starts[3, np.argmax(np.diff(starts[3].astype(np.int64)))])
    numbers[3, [begin, begin + 1]] = numbers[3, [begin + 1, begin]]


def slices_changed(starts: U32, numbers: U32) -> None:
    numbers[[4, 5]] = numbers[[5, 4]]


def list_repeated(starts: U32, numbers: U32) -> None:
    numbers[6] = numbers[6, 0]


def none_at_first(starts: U32, numbers: U32) -> None:
    starts[5][starts[5] == 0] = 1


BAD_STARTS: dict[str, Tamper] = {
    "begins late": none_at_first,
    "falls": set_start(2, 100, 1 << 31),
    "first": set_start(0, 0, 1),
    "last": set_start(15, 256, -1),
    "last too small": set_start(15, 256, 0),
    "first huge": set_start(7, 0, -1),
}
BAD_NUMBERS: dict[str, tuple[Tamper, str]] = {
    "beyond": (set_numbers(1, 77, 2**32 - 1), "slice 1 lists rows beyond its 1500"),
    "just beyond": (set_numbers(2, 0, 1500), "slice 2 lists rows beyond its 1500"),
    "out of order": (two_of_a_list_changed, "slice 3 lists other rows"),
    "of another slice": (slices_changed, "slice 4 lists other rows"),
    "repeated": (list_repeated, "slice 6 lists other rows"),
}


def tampered(monkeypatch: pytest.MonkeyPatch, tamper: Tamper, once: list[int]) -> None:
    """Writers make files of consistent checksums and other lists, until `once` is used up."""
    usual = slice_lists.lists

    def lists(
        rows: oracle.U64, design: SliceDesign, memory: int
    ) -> Iterator[tuple[int, U32, Iterator[U32]]]:
        starts, numbers = collected_by(usual, rows, design, memory)
        if once:
            once.pop()
            tamper(starts, numbers)
        yield 0, starts, iter((numbers,))

    monkeypatch.setattr(slice_lists, "lists", lists)


def collected_by(
    lists: Any, rows: oracle.U64, design: SliceDesign, memory: int
) -> tuple[U32, U32]:
    made = [(starts, [part.copy() for part in parts]) for _, starts, parts in
            lists(rows, design, memory)]
    numbers = np.concatenate([part.reshape(-1) for _, parts in made for part in parts])
    return np.concatenate([starts for starts, _ in made]), numbers.reshape(design.slices, -1)


@pytest.mark.parametrize("kind", BAD_STARTS)
def test_starts_that_do_not_rise_are_refused(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Their checksums hold: the file was made so."""
    with monkeypatch.context() as patch:
        tampered(patch, BAD_STARTS[kind], [1])
        made = fill(index_path)
    file = files(index_path)[0]
    with simindex.open(index_path) as index:
        bad = index._handle.view.last().segments[0].slices
        well = index._handle.view.last().segments[1].slices
        assert bad is not None and well is not None
        file = index_path / "segments" / bad.record.name
        with pytest.raises(CorruptFile, match=file.name) as caught:
            bad.starts  # noqa: B018
        assert "compact --structures" in str(caught.value)
        assert well.starts.shape == (16, 257)
        (found,) = index.check()
        assert (found.severity, Path(found.path)) == ("error", file)
        assert len(index.query(made[:40], h=0)) >= 40
    with simindex.open(index_path, "w") as index:
        index.compact(structures=(LISTS,))
        assert index.check() == []


@pytest.mark.parametrize("kind", BAD_NUMBERS)
def test_numbers_of_other_rows_are_found_by_check(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    tamper, words = BAD_NUMBERS[kind]
    with monkeypatch.context() as patch:
        tampered(patch, tamper, [1])
        fill(index_path)
    with simindex.open(index_path) as index:
        found = index.check()
        bad = index._handle.view.last().segments[0].slices
        assert bad is not None
        assert words in found[0].what
        assert {(f.severity, Path(f.path).name) for f in found} == {("error", bad.record.name)}
        assert len(found) == (2 if kind == "of another slice" else 1)
        assert bad.starts.shape == (16, 257)


def test_lists_of_a_hot_row_are_found_sound(index_path: Path) -> None:
    """All rows in one list, which is the longest that there is."""
    options = IndexOptions(bits=192, structures=("issl",), batch_rows=20_000)
    with simindex.open(index_path, "n", options=options) as index:
        index.append(np.full((20_000, 3), 2**64 - 1, np.uint64))
        index.commit()
        (segment,) = index._handle.view.last().segments
        assert segment.slices is not None
        assert (segment.slices.starts[:, -2] == 0).all()
        assert (segment.slices.numbers == np.arange(20_000)).all()
        assert index.check() == []


@pytest.mark.parametrize("kind", ["name of tables", "tables", "other segment", "width"])
def test_catalog_that_names_another_kind_of_file_is_damaged(index_path: Path, kind: str) -> None:
    fill(index_path)
    index = simindex.open(index_path, "w")
    segment = index._handle.view.last().segments[0]
    (own,) = segment.record.structures
    changed = {
        "name of tables": replace(own, name=own.name[:-5] + ".bphs"),
        "tables": replace(own, structure="bphs:G=2,g=1", header_bits=(4,)),
        "other segment": replace(own, name="f" + own.name[1:]),
        "width": replace(own, structure="issl:w=9"),
    }[kind]
    with index._handle.catalog.reading() as reading:
        edit = Edit(*reading.head())
    edit.change_structures(segment.record, replace(segment.record, structures=(changed,)), [])
    index._handle.catalog.commit(edit)
    index.close()
    with pytest.raises(CorruptFile, match=segment.name):
        simindex.open(index_path)


def test_lists_with_header_directories_are_damaged(index_path: Path) -> None:
    """Nothing writes them: the directories would be another structure's."""
    fill(index_path)
    with simindex.open(index_path) as index:
        segment = index._handle.view.last().segments[0]
        (own,) = segment.record.structures
        uuid = segment.envelope.identity.index
        folder = SegmentFolder(index_path / "segments", uuid, 128, keyed=False)
        with pytest.raises(CorruptFile, match="not complete"):
            slice_lists.open_slices(folder, segment.record, replace(own, header_bits=(4,)))


# -- compaction ------------------------------------------------------------------------------------


def test_compaction_adds_changes_and_drops_lists(index_path: Path) -> None:
    made = fill(index_path, ("psm",))
    rows = files(index_path, ".rows")
    with simindex.open(index_path, "w") as index:
        generation = index.generation
        index.compact(structures=("bphs:G=2,g=1", "issl"))
        assert index.generation == generation + 1  # one commit
        assert index.options.structures == ("psm", "bphs:G=2,g=1", "issl")
        assert len(files(index_path)) == len(files(index_path, ".bphs")) == 2
        assert index.check() == []
        tables = files(index_path, ".bphs")
        index.compact(structures=(LISTS, "bphs:G=2,g=1"))
        assert files(index_path, ".bphs") == tables
        assert files(index_path, ".rows") == rows  # no row was written again
        assert index.stats().structures[LISTS] > 0
        assert index.check() == []
        generation = index.generation
        index.compact(structures=(LISTS, "bphs:G=2,g=1"))
        assert index.generation == generation  # nothing to do
        index.compact(structures=("bphs:G=2,g=1",))
        assert files(index_path) == []
        assert files(index_path, ".bphs") == tables
    with simindex.open(index_path, "w") as index:
        index.compact(structures=(LISTS,))
        index.append(made[:700])  # what comes later carries them too
        index.commit()
        assert len(files(index_path)) == 3
        index.delete(ids=list(range(100)))
        index.compact(full=True)
        assert len(files(index_path)) == len(files(index_path, ".rows")) == 1
        (segment,) = index._handle.view.last().segments
        assert segment.slices is not None
        assert len(segment) == len(made) + 600
        expect_lists(segment.slices.starts, segment.slices.numbers, segment.fingerprints, 8)
        assert index.check() == []
        index.compact(full=True, structures=("psm",))
        assert files(index_path) == []
        assert index.check() == []


def test_merges_beside_the_work_write_lists(index_path: Path) -> None:
    rng = np.random.default_rng(8)
    options = IndexOptions(bits=128, structures=(LISTS,), batch_rows=256, min_merge=2)
    with simindex.open(index_path, "n", options=options) as index:
        for _ in range(9):
            index.append(oracle.uniform(rng, 256, 2))
            index.commit()
    with simindex.open(index_path) as index:
        segments = index._handle.view.last().segments
        assert len(segments) < 9
        assert len(files(index_path)) == len(segments)
        assert index.check() == []


def test_a_merge_knows_how_far_it_is(index_path: Path) -> None:
    """It is done when its last step is, however many of them are slices'."""
    fill(index_path, ("psm", "bphs:G=3,g=1", "issl"), 600, 1280)
    with simindex.open(index_path, "w") as index:
        now, writer, lock = index._handle.view.last(), index._handle.writer, RLock()
        assert writer is not None
        files_of = writer.committer.files
        merge = Merge(
            files_of, now, now.segments, (), lock, Condition(lock), [], hurried=True
        )
        done: list[float] = []
        moved = merge._step
        merge._step = lambda: (moved(), done.append(merge.done))[0]  # type: ignore[method-assign]
        merge._run()
        assert merge.error is None and merge.state is State.WRITTEN
        assert len(done) == 2 + 5
        assert done == sorted(done)
        assert done[-1] == 1.0
        merge.cancel()
    assert len(files(index_path)) == 2


def test_readers_go_on_with_the_lists_they_had(index_path: Path) -> None:
    """Also when the files are gone."""
    fill(index_path)
    with (
        simindex.open(index_path, refresh=False) as pinned,
        simindex.open(index_path) as following,
        simindex.open(index_path, "w") as writer,
    ):
        before = pinned._handle.view.last().segments[0]
        writer.compact(full=True, structures=("issl",))
        assert before.slices is not None
        expect_lists(before.slices.starts, before.slices.numbers, before.fingerprints, 8)
        following.refresh()
        (segment,) = following._handle.view.last().segments
        assert segment.slices is not None
        assert segment.slices.width == 16


def test_a_file_that_a_compaction_took_away_is_looked_for_anew(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that has read the catalog just before takes the newer one."""
    fill(index_path)
    gone = [file.name for file in files(index_path)]
    usual, asked = snapshot.open_slices, []

    def open_slices(
        folder: SegmentFolder, segment: SegmentRecord, record: StructureRecord
    ) -> slice_lists.SliceLists:
        if not asked:
            asked.append(record.name)
            with simindex.open(index_path, "w") as writer:
                writer.compact(structures=("issl",))  # the rows stay where they are
        return usual(folder, segment, record)

    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "open_slices", open_slices)
        reader = simindex.open(index_path)
    with reader:
        assert asked[0] in gone
        for segment in reader._handle.view.last().segments:
            assert segment.slices is not None
            assert segment.slices.damage is None
            assert segment.slices.record.name not in gone
            expect_lists(segment.slices.starts, segment.slices.numbers, segment.fingerprints, 16)


def test_strays_go_with_the_next_writer(index_path: Path) -> None:
    fill(index_path)
    kept = files(index_path)
    own = kept[0].name
    stray = kept[0].with_name(own[:26] + "00000000.issl")
    shutil.copy(kept[0], stray)
    foreign = kept[0].with_name("notes.issl")
    foreign.write_text("mine")
    with simindex.open(index_path) as index:
        assert {Path(f.path).name for f in index.check()} == {stray.name, foreign.name}
        assert {f.severity for f in index.check()} == {"note"}
    simindex.open(index_path, "w").close()
    assert not stray.exists()
    assert foreign.exists()
    newer = kept[0].with_name("f" + own[1:])
    shutil.copy(kept[0], newer)
    with pytest.raises(CorruptFile, match="newer than the catalog"):
        simindex.open(index_path, "w")
