"""Permuted tables are the segment's rows under another order, or they are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import damaged
import numpy as np
import oracle
import pytest
from damaged import FOUND_WHEN_OPENED, flip_bit

import simindex
from simindex import IndexOptions
from simindex.bits.design import BlockDesign
from simindex.errors import CorruptFile, InvalidOption
from simindex.storage.tables import permuted
from simindex.storage.tables.record import SegmentFolder, SegmentRecord
from simindex.storage.tables.table import sort_table
from simindex.writing.restructuring import restructure

DESIGN = "bphs:G=4,g=1"
OTHER = "bphs:G=2,g=1,r=1"


def files(index: Path, suffix: str = ".bphs") -> list[Path]:
    return damaged.files(index, suffix)


def fill(path: Path, structures: tuple[str, ...] = (DESIGN,), rows: int = 3000) -> oracle.U64:
    """Two segments of distinct and equal rows."""
    rng = np.random.default_rng(5)
    made = oracle.skewed(rng, rows, 1, templates=40)
    made[:50] = made[50:100]
    options = IndexOptions(structures=structures, batch_rows=2000, min_merge=0)
    with simindex.open(path, "n", options=options) as index:
        for part in np.array_split(made, 2):
            index.append(part[:, 0])
            index.commit()
    return made


@pytest.mark.parametrize("words", [1, 2, 5])
@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_tables_hold_the_rows_permuted_and_sorted(words: int, rows: int) -> None:
    rng = np.random.default_rng(words)
    made = rng.integers(0, 4, (rows, words), dtype=np.uint64) << np.uint64(50)  # many ties
    design = BlockDesign.parse("bphs:G=3,g=1", 64 * words)
    for number in (1, 2):
        table = permuted.permuted_rows(made, design, number)
        assert table.tolist() == sorted(design.permute(made, number).tolist())
        assert permuted.content_sum(design.unpermute(table, number)) == (
            permuted.content_sum(made)
        )


def test_content_sum_tells_rows_apart() -> None:
    rng = np.random.default_rng(0)
    rows = oracle.uniform(rng, 500, 2)
    total = permuted.content_sum(rows)
    assert total == permuted.content_sum(rows[rng.permutation(500)])
    for change in (1, 1 << 63):
        other = rows.copy()
        other[77, 1] ^= np.uint64(change)
        assert permuted.content_sum(other) != total
    assert permuted.content_sum(rows[:, ::-1]) != total
    assert permuted.content_sum(rows[:-1]) != total


def test_numbers_of_tables_are_reused_without_overlap() -> None:
    free = permuted.free_tables
    assert free([], 3) == 1
    assert free([(0, 5), (1, 5), (2, 5)], 3) == 3
    assert free([(0, 5), (4, 5), (5, 5)], 3) == 1
    assert free([(0, 5), (3, 5), (6, 5)], 3) == 7
    with pytest.raises(InvalidOption, match="tables"):
        free([(0, 5), (40_000, 5)], 40_000)


def test_memory_is_one_fingerprint_a_row_and_table(index_path: Path) -> None:
    """[PSM] (10): T n b / 8, of which table 0 is the rows themselves."""
    made = fill(index_path, ("psm", "bphs:G=5,g=2"), rows=20_000)
    with simindex.open(index_path) as index:
        held = index.stats().structures
    assert held["psm"] == 0
    beside = len(files(index_path)) * 12_288  # pages begun, checksums
    assert 9 * made.nbytes <= held["bphs:G=5,g=2"] <= 9 * made.nbytes + beside


# -- damage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FOUND_WHEN_OPENED)
@pytest.mark.slow
def test_damaged_file_is_named_and_replaced(index_path: Path, kind: str) -> None:
    """Other methods still answer; building the structures again makes all well."""
    made = fill(index_path)
    before = files(index_path)
    FOUND_WHEN_OPENED[kind](before[0])
    model = oracle.Model()
    model.append(made, list(range(len(made))))
    model.commit()
    expected = model.query(made[:40], 3)
    with simindex.open(index_path) as index:
        with pytest.raises(CorruptFile, match=before[0].name) as caught:
            index.query(made[:40], method="bphs")
        assert "compact --structures" in str(caught.value)
        assert _named(index.query(made[:40], method="psm")) == expected
        found = [f for f in index.check() if f.severity == "error"]
        assert found
        assert {Path(f.path).name for f in found} <= {path.name for path in before}
    with simindex.open(index_path, "w") as index:
        index.compact(structures=(DESIGN,))
        assert _named(index.query(made[:40], method="bphs")) == expected
        assert index.check() == []
    assert len(files(index_path)) == 2
    assert before[0] not in files(index_path)


def _named(found: simindex.Matches) -> list[tuple[int, int, Any]]:
    return sorted((match.query, match.distance, match.id) for match in found)


@pytest.mark.slow
def test_a_flipped_bit_in_any_table_is_found_by_check_and_repaired(index_path: Path) -> None:
    fill(index_path)
    first, second = files(index_path)
    size = first.stat().st_size
    for at in (4096, 4096 + 1500 * 8, size // 2, 4096 + 3 * 1500 * 8 - 1):
        kept = first.read_bytes()
        flip_bit(lambda size, at=at: at)(first)  # type: ignore[misc]
        with simindex.open(index_path) as index:
            (found,) = index.check()
            assert (found.severity, Path(found.path)) == ("error", first)
            assert "damaged" in found.what
        first.write_bytes(kept)
    flip_bit(lambda size: 5000)(first)
    with simindex.open(index_path, "w") as index:
        index.compact(structures=(DESIGN,))
        assert index.check() == []
    left = files(index_path)
    assert second in left  # what is whole stays
    assert first not in left
    assert len(left) == 2


def test_tables_of_other_rows_are_found_by_check(tmp_path: Path) -> None:
    """Checksums hold, and still the content is not the segment's."""
    rng = np.random.default_rng(1)
    mine = sort_table(
        "", oracle.uniform(rng, 300), np.arange(300, dtype=np.uint64), None, horizon=0
    )
    others = mine.fingerprints.copy()
    others[7] ^= np.uint64(1)
    record = SegmentRecord(
        "0000000000000001-00000009.rows", 300, 0, 1, 2, 4
    )
    design = BlockDesign.parse(DESIGN)
    folder = SegmentFolder(tmp_path, bytes(16), 64, keyed=False)
    for rows, well in ((mine.fingerprints, True), (others, False)):
        structure, directories = permuted.write(
            folder, record, rows, design, first_table=1, generation=1
        )
        assert [number for number, _ in directories] == [1, 2, 3]
        opened = permuted.open_permuted(folder, record, structure, lambda table: None)
        found = list(permuted.disorder(opened, permuted.content_sum(mine.fingerprints)))
        assert (found == []) == well
        assert well or len(found) == 3


def test_a_hit_that_table_0_lacks_is_damage(index_path: Path) -> None:
    made = fill(index_path)
    with simindex.open(index_path) as index:
        segment = index._handle.view.last().segments[0]
        tables = segment.structures[DESIGN].tables
        planted = tables[0].fingerprints.copy()
        design = BlockDesign.parse(DESIGN)
        lacking = made[:1] ^ np.uint64(1 << 63)  # the first block differs: table 0 cannot see it
        assert not (segment.fingerprints == lacking).any()
        row = int(np.searchsorted(planted[:, 0], design.permute(lacking, 1)[0, 0]))
        planted[min(row, len(planted) - 1)] = design.permute(lacking, 1)[0]
        tables[0].fingerprints = planted
        with pytest.raises(CorruptFile, match="check"):
            index.query(lacking ^ np.uint64(1 << 62), method="bphs")


# -- compaction ------------------------------------------------------------------------------------


def test_compaction_adds_and_drops_structures(index_path: Path) -> None:
    made = fill(index_path, ("psm",))
    model = oracle.Model()
    model.append(made, list(range(len(made))))
    model.commit()
    rows = files(index_path, ".rows")
    with simindex.open(index_path, "w") as index:
        generation = index.generation
        index.compact(structures=(DESIGN, OTHER))
        assert index.generation == generation + 1  # one commit
        assert index.options.structures == ("psm", DESIGN, OTHER)
        assert len(files(index_path)) == 4
        kept = {s.record.structures[0].name for s in index._handle.view.last().segments}
        for method in (DESIGN, OTHER, "bphs"):
            found = index.query(made[:99], method=method)
            assert _named(found) == model.query(made[:99], 3)
            assert "psm" not in found.stats.method
        assert index.check() == []
        index.compact(structures=("psm", DESIGN))
        assert {path.name for path in files(index_path)} == kept
        assert files(index_path, ".rows") == rows  # no row was written again
        assert list(index.stats().structures) == ["psm", DESIGN]
        generation = index.generation
        index.compact(structures=(DESIGN,))
        assert index.generation == generation  # nothing to do
        with pytest.raises(InvalidOption):
            index.query(made[:9], method=OTHER)
        assert index.check() == []
    with simindex.open(index_path, "w") as index:
        assert index.options.structures == ("psm", DESIGN)
        index.append(made[:700, 0])  # what comes later carries them too
        index.commit()
        assert len(files(index_path)) == 3
        index.compact(full=True, structures=(OTHER,))
        assert len(files(index_path)) == len(files(index_path, ".rows")) == 1
        assert index.query(made[:9], method="bphs").stats.method == OTHER
        index.compact(structures=("psm",))
        assert files(index_path) == []
        assert index.check() == []


def test_readers_go_on_with_the_tables_they_had(index_path: Path) -> None:
    """Also when the files are gone, and the numbers of their directories given to others."""
    made = fill(index_path, (DESIGN,))
    with (
        simindex.open(index_path, refresh=False) as pinned,
        simindex.open(index_path) as following,
        simindex.open(index_path, "w") as writer,
    ):
        writer.compact(structures=(OTHER,))
        asked = pinned.query(made[:50], method=DESIGN)
        assert asked.stats.method == DESIGN
        assert _named(asked) == _named(writer.query(made[:50], method=OTHER))
        assert following.query(made[:50], method="bphs").stats.method == OTHER
        assert following.options.structures == ("psm", OTHER)


def test_segments_without_the_tables_are_searched_exactly(index_path: Path) -> None:
    made = fill(index_path, ("psm",))
    with simindex.open(index_path, "w") as index:
        segments = index._handle.view.last().segments
        writer = index._handle.writer
        assert writer is not None
        only = index._handle.view.last()
        only.segments = segments[:1]
        restructure(writer.committer, (DESIGN,))  # leaves the second segment as it is
        found = index.query(made[:99], method="bphs")
        methods = found.stats.method.split("+")
        assert DESIGN in methods
        assert len(methods) == 2
        assert found.stats.exact
        assert _named(found) == _named(index.query(made[:99], method="scan"))


def test_design_that_does_not_fit_creates_nothing(index_path: Path) -> None:
    for name in ("bphs:G=65,g=1", "bphs:G=4,g=4", "bphs:nested=1x4", "bphs:G=4,g=1,r=20"):
        with pytest.raises(InvalidOption, match="bphs"):
            simindex.open(index_path, "n", options=IndexOptions(structures=(name,)))
        assert not index_path.exists()
    fill(index_path, ("psm",))
    with (
        simindex.open(index_path, "w") as index, pytest.raises(InvalidOption, match="G=65")
    ):
        index.compact(structures=("bphs:G=65,g=1",))
    with simindex.open(index_path) as index:
        assert index.options.structures == ("psm",)


def test_tables_of_other_rows_under_the_segments_name_are_refused(tmp_path: Path) -> None:
    """They carry the checksum of their rows' footer."""
    rows = np.arange(50, dtype=np.uint64)[:, None]
    segment = SegmentRecord("0000000000000001-00000001.rows", 50, 1, 0, 7, 0)
    design = BlockDesign.parse("bphs:G=2,g=1", 64)
    folder = SegmentFolder(tmp_path, bytes(16), 64, keyed=False)
    record, _ = permuted.write(folder, segment, rows, design, first_table=1, generation=1)
    for owner, theirs in ((segment, True), (replace(segment, footer_checksum=8), False)):
        tables = permuted.open_permuted(folder, owner, record, lambda table: None)
        assert (tables.damage is None) is theirs
