"""What is predicted without an index: promises, memory, the choice, impossible asks."""

from __future__ import annotations

from typing import Any

import pytest

from simindex.bits import vosh
from simindex.bits.design import BlockDesign
from simindex.errors import InvalidOption
from simindex.planning.forecast import forecast
from simindex.planning.model import BATCHES, Forecast

GIB = 1 << 30


def chosen(found: list[Forecast]) -> Forecast:
    (one,) = [one for one in found if one.chosen]
    return one


def test_every_method_is_there_and_keeps_the_promise() -> None:
    found = forecast(10**7, h=3, recall=0.95)
    assert [one.method for one in found[:2]] == ["psm", "psm"]
    assert found[-1].method == "scan"
    assert {one.recall for one in found} == {0.95, 1.0}
    designs = [BlockDesign.parse(one.method) for one in found[2:-1]]
    assert {"bphs:G=2,g=1,r=1", "bphs:G=5,g=2"} <= {design.structure for design in designs}
    assert all(design.exact_for >= 3 for design in designs)
    assert [design.tables for design in designs] == [one.tables for one in found[2:-1]]
    for one in found:
        assert one.queries_s > 0
        assert list(one.batch_queries_s) == list(BATCHES)
        assert all(rate > 0 for rate in one.batch_queries_s.values())


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


def test_a_tight_memory_narrows_the_header_of_psm() -> None:
    """t is chosen under the limit: directories are what can be made smaller."""
    free = forecast(10**7, recall=0.95)[0]
    tight = forecast(10**7, recall=0.95, memory_bytes=free.memory_bytes - 1)[0]
    assert tight.fits and tight.header_bits < free.header_bits
    assert tight.queries_s < free.queries_s


def test_exact_psm_tries_every_flip_set() -> None:
    partial, exact = forecast(10**7, recall=0.95)[:2]
    assert exact.flips == vosh.set_count(exact.header_bits[0], 3)
    assert partial.flips < exact.flips / 10


def test_more_rows_than_a_segment_holds_take_several() -> None:
    one, many = (chosen(forecast(rows, h=0)) for rows in (4 * 10**9, 40 * 10**9))
    assert one.queries_s > 5 * many.queries_s


def test_nothing_fits_says_the_least_that_would() -> None:
    with pytest.raises(InvalidOption, match="the least is 8,000,000,000 bytes") as caught:
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
