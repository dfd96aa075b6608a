"""What is predicted without an index: the engine's plans, work as counted, memory, the choice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import oracle
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.bits import vosh
from simindex.bits.design import BlockDesign
from simindex.errors import InvalidOption
from simindex.planning.forecast import (
    BATCHES,
    Forecast,
    Imagined,
    forecast,
    usual_calibration,
)
from simindex.planning.machine import Machine
from simindex.planning.question import Question

GIB = 1 << 30


def chosen(found: list[Forecast]) -> Forecast:
    (one,) = [one for one in found if one.chosen]
    return one


ROWS, DESIGN = 120_000, BlockDesign.flat(4, 1)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[simindex.Index]:
    """A segment of uniform rows, a tenth of which are rewrites of others."""
    rng = np.random.default_rng(4)
    weights = oracle.normal_weights(rng, ROWS)
    near, of = oracle.near_duplicates(rng, weights[: ROWS // 10], 3)
    weights[ROWS // 10 :][of] = near
    path = tmp_path_factory.mktemp("forecast") / "i.sim"
    options = IndexOptions(structures=("psm", DESIGN.structure))
    with simindex.open(path, "n", options=options) as index:
        index.append(Batch(oracle.signs(weights), weights=weights))
        index.compact(full=True)
    with simindex.open(path) as index:
        yield index


@pytest.mark.parametrize("queries", [1, 1024, 5000, 100_000, 1_000_000])
@pytest.mark.parametrize(
    ("method", "recall"), [("psm", 0.9), ("psm", 1.0), ("bphs", 1.0), ("scan", 1.0), ("auto", 1.0)]
)
def test_a_forecast_is_the_plan_of_an_index_of_that_size(
    stored: simindex.Index, method: str, recall: float, queries: int
) -> None:
    """In all that a plan holds: method, headers, flips, probes, rows compared, passes and time."""
    question = Question(h=3, recall=recall, method=method)
    weights = oracle.normal_weights(np.random.default_rng(1), 1)
    plans = stored._answerer.plans
    (real,) = plans.plan(stored._current(), question, queries, weights).tables
    imagined = Imagined(ROWS, 64, (DESIGN,)).plan(
        question, 1 << queries.bit_length() >> 1, plans.machine, plans._calibrations.get(3)
    )
    assert imagined == real
    exactly = Imagined(ROWS, 64, (DESIGN,)).plan(
        question, queries, plans.machine, plans._calibrations.get(3)
    )
    assert exactly.method == real.method


@pytest.mark.parametrize(("method", "recall"), [("psm", 0.9), ("psm", 1.0), ("bphs", 1.0)])
def test_predicted_work_is_the_work_that_is_counted(
    stored: simindex.Index, method: str, recall: float
) -> None:
    """Probes to the last one; rows compared within what chance makes of uniform rows."""
    weights = oracle.normal_weights(np.random.default_rng(2), 3000)
    batch = Batch(oracle.signs(weights), weights=weights)
    stats = stored.query(batch, h=3, recall=recall, method=method).stats
    plans = stored._answerer.plans
    predicted = Imagined(ROWS, 64, (DESIGN,)).plan(
        Question(h=3, recall=recall, method=method), 3000, plans.machine,
        plans._calibrations.get(3),
    )
    assert stats.probes == 3000 * predicted.probes
    assert stats.rows_compared == pytest.approx(3000 * predicted.compared, rel=0.05)


def test_predicted_bytes_are_those_of_the_files(stored: simindex.Index) -> None:
    """A cold batch reads every table once, and the ids."""
    (table,) = stored._current().tables
    fingerprints, ids = table.fingerprints.nbytes, table.ids.nbytes
    lines = {
        one.method: one for one in forecast(ROWS, machine=replace(Machine(), disk_bytes_s=1.0))
    }
    tables = table.structures[DESIGN.structure].tables
    every = fingerprints + sum(one.fingerprints.nbytes for one in tables) + ids
    # At a byte a second, reading is all that a batch takes.
    assert 10_000 / lines[DESIGN.structure].cold_queries_s[10_000] == pytest.approx(every, rel=1e-6)
    assert 10_000 / lines["psm"].cold_queries_s[10_000] == pytest.approx(
        fingerprints + ids, rel=0.01
    )
    directories = 4 * (1 << table.header_bits)
    assert lines["psm"].memory_bytes == fingerprints + directories
    assert lines[DESIGN.structure].memory_bytes == every - ids + directories + sum(
        4 << one.header_bits for one in tables
    )


@pytest.mark.parametrize("rows", [10**6, 6 * 10**6, 6 * 10**7])
def test_larger_batches_are_no_slower_and_a_cold_file_no_faster(rows: int) -> None:
    for one in forecast(rows, recall=0.95):
        assert list(one.batch_queries_s) == list(one.cold_queries_s) == list(BATCHES)
        warm, cold = list(one.batch_queries_s.values()), list(one.cold_queries_s.values())
        # Plans of equal cost change places, and curves meet, within some hundredths.
        assert all(more >= 0.9 * few for few, more in pairwise(warm))
        assert all(more >= 0.9 * few for few, more in pairwise(cold))
        assert all(c <= w for c, w in zip(cold, warm, strict=True))


def test_a_batch_that_waits_for_the_disk_is_as_fast_as_it_is_large() -> None:
    """60 M rows are 0.96 GB, an hour of a disk of 270 kB a second."""
    slow = replace(Machine(), disk_bytes_s=0.96e9 / 3600)
    psm = forecast(60_000_000, recall=0.95, machine=slow)[0]
    for m in BATCHES:
        assert m / psm.cold_queries_s[m] == pytest.approx(3600, rel=0.01)
    fast = replace(Machine(), disk_bytes_s=1e15)
    psm = forecast(60_000_000, recall=0.95, machine=fast)[0]
    assert psm.cold_queries_s == pytest.approx(psm.batch_queries_s, rel=1e-3)


@pytest.mark.slow
def test_a_sweep_of_few_queries_pays_for_the_rows_and_of_many_does_not() -> None:
    """The engine sweeps: ten times the queries take less than ten times as long, and a hundred
    times the rows far less than a hundred times."""
    m = 1_000_000

    def seconds(rows: int, queries: int) -> float:
        return queries / forecast(rows, recall=0.95)[0].batch_queries_s[queries]

    assert 5 < seconds(60_000_000, 10 * m) / seconds(60_000_000, m) < 10
    assert seconds(600_000_000, 10 * m) / seconds(6_000_000, 10 * m) < 4


def test_a_large_exact_batch_without_tables_goes_over_the_queries() -> None:
    (psm,) = (one for one in forecast(60_000_000) if one.method == "psm")
    assert psm.batch_methods[10_000] == "psm"
    assert psm.batch_methods[1_000_000].endswith(" over queries")
    assert psm.batch_queries_s[1_000_000] > 5 * psm.batch_queries_s[10_000]


def test_every_structure_is_there_and_keeps_the_promise() -> None:
    found = forecast(10**7, h=3, recall=0.95)
    assert [one.method for one in found[:2]] == ["psm", "psm"]
    assert found[-1].method == "scan"
    assert {one.recall for one in found} == {0.95, 1.0}
    designs = [BlockDesign.parse(one.method) for one in found[2:-1]]
    usual = {name for name in IndexOptions().structures if name.startswith("bphs:")}
    assert usual | {"bphs:G=5,g=2"} <= {design.structure for design in designs}
    assert all(design.exact_for >= 3 for design in designs)
    assert [design.tables for design in designs] == [one.tables for one in found[2:-1]]


def test_flips_are_as_many_as_an_index_of_revisions_takes() -> None:
    """As many as an index of the tests' own revisions takes, within chance."""
    learned = usual_calibration(64, 3)
    assert learned.learned
    for header_bits, most in ((16, 9), (20, 13), (22, 19)):
        assert most / 3 <= learned.flips(header_bits, 3, 0.95) <= most
    assert learned.flips(20, 3, 0.95) < learned.flips(20, 3, 0.99)
    wide = usual_calibration(128, 3)
    assert wide.pairs.differing.shape[1] == 2
    assert set(np.bitwise_count(wide.pairs.differing).sum(axis=1).tolist()) == {1, 2, 3}


@pytest.mark.slow
def test_the_fastest_that_fits_is_chosen() -> None:
    for memory in (None, 64 * GIB, 200 * GIB):
        found = forecast(8 * 10**9, memory_bytes=memory)
        best = chosen(found)
        assert best.fits and best.recall == 1
        assert best.queries_s == max(one.queries_s for one in found if one.fits)
        assert all(one.fits == (memory is None or one.memory_bytes <= memory) for one in found)
    assert chosen(forecast(8 * 10**9)).method.startswith("bphs:")
    assert chosen(forecast(8 * 10**9, recall=0.95, memory_bytes=64 * GIB)).method == "psm"


def test_memory_is_that_of_the_papers() -> None:
    """(10): T n b / 8, and directories beside, of at most half a byte a row and table."""
    for one in forecast(10**7):
        papers = one.tables * 10**7 * 8
        assert papers <= one.memory_bytes <= papers + one.tables * 10**7 * 0.84
        assert one.disk_bytes == one.memory_bytes + 8 * 10**7


def test_exact_psm_tries_every_flip_set() -> None:
    partial, exact = forecast(10**7, recall=0.95)[:2]
    assert exact.flips == vosh.set_count(exact.header_bits[0], 3)
    assert partial.flips < exact.flips / 10


def test_more_rows_than_a_segment_holds_take_several() -> None:
    one, many = (chosen(forecast(rows, h=0)) for rows in (4 * 10**9, 40 * 10**9))
    assert one.queries_s > 5 * many.queries_s


@pytest.mark.slow
def test_nothing_fits_says_the_least_that_would() -> None:
    with pytest.raises(InvalidOption, match="needs the least, 8,000,000,000 bytes") as caught:
        forecast(10**9, memory_bytes=10**9)
    least = caught.value.data["expected"]
    assert any(one.fits for one in forecast(10**9, memory_bytes=least))
    with pytest.raises(InvalidOption):
        forecast(10**9, memory_bytes=least - 1)


def test_a_radius_no_design_reaches_leaves_the_others() -> None:
    assert {one.method for one in forecast(10**6, h=64)} == {"psm", "scan"}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("rows", 0), ("rows", -1), ("rows", 1.5), ("rows", True), ("rows", 1 << 60),
        ("h", -1), ("h", 65), ("recall", 0), ("recall", 2.0), ("bits", 63), ("bits", 1 << 20),
    ],
)
def test_options_out_of_range_are_named(option: str, value: object) -> None:
    given: dict[str, Any] = {"rows": 1000, option: value}
    with pytest.raises(InvalidOption, match=f"{option}=") as caught:
        forecast(given.pop("rows"), **given)
    assert caught.value.data["option"] == option
