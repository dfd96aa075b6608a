"""All pairs in memory, against brute force."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simindex
from simindex.pairs import find_all
from simindex.pairs.find_all import chosen_blocks, partition
from simindex.resources.memory import answer_bytes


def expected(rows: Any, h: int) -> np.ndarray[Any, Any]:
    """All (a, b, distance) with a < b, sorted."""
    found = oracle.matches(rows, rows, h)
    return found[found[:, 0] < found[:, 1]]


def columns(found: simindex.Pairs) -> np.ndarray[Any, Any]:
    assert [c.dtype for c in (found.a, found.b, found.distance)] == [np.int64, np.int64, np.uint16]
    return np.stack([found.a, found.b, found.distance.astype(np.int64)], axis=1)


def expanded(rows: Any, collapsed: simindex.CollapsedPairs) -> np.ndarray[Any, Any]:
    """The pairs that collapsed ones stand for, sorted."""
    members: dict[int, list[int]] = {}
    for row, first in enumerate(collapsed.groups.labels(len(rows)).tolist()):
        members.setdefault(first, []).append(row)
    found = [
        (min(x, y), max(x, y), distance)
        for a, b, distance in collapsed
        for x in members[a]
        for y in members[b]
    ]
    found += [
        (x, y, 0) for some in members.values() for i, x in enumerate(some) for y in some[i + 1 :]
    ]
    return np.array(sorted(found), np.int64).reshape(-1, 3)


def worlds(rng: np.random.Generator, n: int, words: int, kind: str) -> Any:
    if kind == "uniform":
        return oracle.uniform(rng, n, words)
    if kind == "families":
        return oracle.skewed(rng, n, words, templates=max(1, n // 30), flips=4)
    if kind == "equal":
        return np.repeat(oracle.uniform(rng, 1, words), n, axis=0)
    rows = oracle.skewed(rng, n, words, templates=max(1, n // 30), flips=2)
    hot = rng.random(n) < 0.5  # half of all rows carry one value in a hundred
    rows[hot] = rows[rng.integers(0, max(1, n // 100), hot.sum())]
    return rows


KINDS = ("uniform", "families", "equal", "templates")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("words", "n"), [(1, 700), (2, 400), (64, 150)])
@pytest.mark.parametrize("h", [0, 1, 3, 6, 20])
def test_find_all_gives_every_pair_once_in_order(
    kind: str, words: int, n: int, h: int, rng: np.random.Generator
) -> None:
    rows = worlds(rng, n, words, kind)
    truth = expected(rows, h)
    assert np.array_equal(columns(simindex.find_all(rows, h=h)), truth)
    collapsed = simindex.find_all(rows, h=h, collapse_equal=True)
    assert isinstance(collapsed, simindex.CollapsedPairs)
    assert np.array_equal(expanded(rows, collapsed), truth)
    assert collapsed.represented == len(truth)


@given(st.data())
@pytest.mark.slow
def test_find_all_agrees_with_brute_force(data: st.DataObject) -> None:
    words = data.draw(st.sampled_from([1, 1, 1, 2, 3, 64]))
    bits = 64 * words
    n = data.draw(st.integers(0, 80))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    rows = worlds(rng, n, words, data.draw(st.sampled_from(KINDS)))
    h = data.draw(st.integers(0, 8) | st.integers(0, bits))
    blocks = data.draw(st.none() | st.integers(min(h + 1, bits), min(bits, h + 3)))
    threads = data.draw(st.integers(1, 3))
    found = simindex.find_all(rows, h=h, blocks=blocks, threads=threads)
    assert np.array_equal(columns(found), expected(rows, h))


@given(st.data())
@pytest.mark.slow
def test_collapsed_pairs_stand_for_all(data: st.DataObject) -> None:
    words = data.draw(st.sampled_from([1, 1, 2]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    rows = worlds(rng, data.draw(st.integers(0, 80)), words, data.draw(st.sampled_from(KINDS)))
    h = data.draw(st.integers(0, 8))
    found = simindex.find_all(
        rows, h=h, collapse_equal=True, threads=data.draw(st.integers(1, 3))
    )
    assert isinstance(found, simindex.CollapsedPairs)
    first, row = found.groups.first, found.groups.row
    assert list(found.groups) == sorted(zip(first.tolist(), row.tolist(), strict=True))
    assert np.all(first < row)
    assert len(np.unique(row)) == len(row) == n_repeats(rows)
    assert not np.isin(found.a, row).any()
    assert not np.isin(found.b, row).any()
    assert np.all((found.a < found.b) & (found.distance > 0))
    assert np.array_equal(expanded(rows, found), expected(rows, h))


def n_repeats(rows: Any) -> int:
    return len(rows) - len(np.unique(rows, axis=0)) if len(rows) else 0


@pytest.mark.parametrize("blocks", [4, 5, 6, 8])
def test_any_number_of_blocks_gives_the_same_pairs(
    blocks: int, rng: np.random.Generator
) -> None:
    rows = worlds(rng, 2000, 1, "templates")
    rows[:500] = oracle.flip(rng, rows[500:1000], rng.integers(0, 4, 500))
    truth = columns(simindex.find_all(rows))
    assert len(truth) > 500
    assert np.array_equal(columns(simindex.find_all(rows, blocks=blocks)), truth)


@pytest.mark.parametrize("kind", ["uniform", "templates"])
@pytest.mark.parametrize("threads", [2, 3, 7])
@pytest.mark.slow
def test_threads_do_not_change_the_answer(
    kind: str, threads: int, rng: np.random.Generator
) -> None:
    rows = worlds(rng, 12_000, 1, kind)
    rows[:3000] = oracle.flip(rng, rows[3000:6000], rng.integers(0, 4, 3000))
    for collapse in (False, True):
        one = simindex.find_all(rows, collapse_equal=collapse, threads=1)
        some = simindex.find_all(rows, collapse_equal=collapse, threads=threads)
        assert len(one) > 3000 // 2
        assert np.array_equal(columns(one), columns(some))


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.slow
def test_threads_share_rows_that_are_all_compared(words: int, rng: np.random.Generator) -> None:
    rows = worlds(rng, 6000, words, "families")
    rows[:1000] = rows[2000:3000]
    for h in (0, 12):
        truth = expected(rows, h)
        for threads in (1, 3):
            assert chosen_blocks(len(rows), words, h) == 0
            assert np.array_equal(columns(simindex.find_all(rows, h=h, threads=threads)), truth)


@pytest.mark.slow
def test_planted_pairs_are_found_among_many_rows(rng: np.random.Generator) -> None:
    """A few rows are near another one, and a few equal one that has a near one."""
    rows = oracle.uniform(rng, 300_000)
    rows[:2000] = oracle.flip(rng, rows[-2000:], rng.integers(0, 4, 2000))
    rows[2000:2200] = rows[-200:]
    touched = np.concatenate([np.arange(2200), np.arange(298_000, 300_000)])
    truth = expected(rows[touched], 3)
    truth[:, :2] = touched[truth[:, :2]]
    assert np.array_equal(columns(simindex.find_all(rows[:, 0])), truth)
    collapsed = simindex.find_all(rows, collapse_equal=True)
    assert isinstance(collapsed, simindex.CollapsedPairs)
    assert np.array_equal(expanded(rows, collapsed), truth)


def test_a_million_equal_rows_are_one_group() -> None:
    rows = np.full(1_000_000, 7, np.uint64)
    rows[500_000] = 6
    found = simindex.find_all(rows, collapse_equal=True)
    assert isinstance(found, simindex.CollapsedPairs)
    assert list(found) == [(0, 500_000, 1)]
    assert np.array_equal(found.groups.first, np.zeros(999_998, np.int64))
    assert np.array_equal(found.groups.row, np.delete(np.arange(1_000_000), [0, 500_000]))
    assert found.represented == 999_999 * 999_998 // 2 + 999_999
    assert repr(found) == "<1 CollapsedPairs, 999998 rows equal to an earlier one>"


@pytest.mark.slow
def test_pairs_that_do_not_fit_into_memory_are_refused() -> None:
    rows = np.zeros(10_000_000, np.uint64)
    with pytest.raises(
        simindex.TooManyMatches, match=r"49,999,995,000,000 pairs .* collapse_equal.*Index\.pairs"
    ) as caught:
        simindex.find_all(rows)
    assert caught.value.data["memory_limit"] == answer_bytes()
    assert caught.value.data["found"] > caught.value.data["expected"]


def test_many_pairs_of_different_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal rows that are collapsed do not count."""
    rows = np.repeat(np.uint64(1) << np.arange(64, dtype=np.uint64), 10)
    monkeypatch.setattr(find_all, "answer_bytes", lambda: 24 * 1000)
    with pytest.raises(simindex.TooManyMatches, match="pairs or more do not fit into 0 MiB"):
        simindex.find_all(rows, collapse_equal=True)
    monkeypatch.setattr(find_all, "answer_bytes", lambda: 24 * 2016)
    assert len(simindex.find_all(rows, collapse_equal=True)) == 64 * 63 // 2


@pytest.mark.slow
def test_rows_within_a_crowded_ball_are_found_fast(rng: np.random.Generator) -> None:
    """Rows that agree on most bits but are not near: direct comparison would take a minute."""
    rows = oracle.flip(rng, np.zeros((200_000, 1), np.uint64), 14)
    started = time.process_time()
    found = columns(simindex.find_all(rows, threads=1))
    assert time.process_time() - started < 20
    some = np.sort(rng.choice(len(rows), 300, replace=False))
    truth = oracle.matches(rows, rows[some], 3)
    truth[:, 0] = some[truth[:, 0]]
    truth = truth[truth[:, 0] != truth[:, 1]]
    either = np.concatenate([found, found[:, [1, 0, 2]]])
    either = either[np.isin(either[:, 0], some)]
    assert np.array_equal(either[np.lexsort((either[:, 1], either[:, 0]))], truth)


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("collapse", [False, True])
def test_few_rows_have_no_pairs(n: int, collapse: bool) -> None:
    found = simindex.find_all(np.zeros(n, np.uint64), h=64, collapse_equal=collapse)
    assert len(found) == 0
    assert columns(found).shape == (0, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"h": -1}, "h=-1 is not valid: give a whole number from 0 to 64"),
        ({"h": 65}, "from 0 to 64"),
        ({"h": 3.0}, "from 0 to 64"),
        ({"h": True}, "from 0 to 64"),
        ({"blocks": 3}, "blocks=3 is not valid: give a whole number from 4 to 64"),
        ({"blocks": 65}, "from 4 to 64"),
        ({"h": 20, "blocks": 40}, "passes"),
        ({"threads": 0}, "from 1 on"),
    ],
)
def test_options_out_of_range_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(simindex.InvalidOption, match=message):
        simindex.find_all(np.zeros(3, np.uint64), **options)


@pytest.mark.parametrize(
    "rows", [np.zeros(3), np.zeros((3, 0), np.uint64), np.zeros((2, 2, 2), np.uint64), "abc"]
)
def test_what_is_no_fingerprint_is_refused(rows: Any) -> None:
    with pytest.raises(simindex.InvalidBatch):
        simindex.find_all(rows)


def test_too_many_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_all, "MAX_ROWS", 1000)
    with pytest.raises(simindex.InvalidBatch, match="1,000 rows: the limit of one call is 999"):
        simindex.find_all(np.zeros(1000, np.uint64), collapse_equal=True)


def test_rows_of_any_layout_are_taken(rng: np.random.Generator) -> None:
    rows = worlds(rng, 300, 2, "families")
    truth = expected(rows, 3)
    assert np.array_equal(columns(simindex.find_all(np.asfortranarray(rows), h=3)), truth)
    repeated = np.repeat(rows, 2, axis=0)[::2]
    assert np.array_equal(columns(simindex.find_all(repeated, h=3)), truth)
    assert np.array_equal(
        columns(simindex.find_all(rows[:, 0].tolist())), expected(rows[:, :1], 3)
    )


@pytest.mark.slow
def test_an_interrupt_ends_the_search_soon(rng: np.random.Generator) -> None:
    rows = oracle.uniform(rng, 300_000)
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT))
    started = time.perf_counter()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        simindex.find_all(rows, h=26, threads=1)
    assert time.perf_counter() - started < 5
    timer.join()


def test_blocks_are_chosen_by_rows_and_radius() -> None:
    assert chosen_blocks(1_000_000, 1, 3) == 4
    assert chosen_blocks(1_000_000, 1, 0) == 1
    assert chosen_blocks(100, 1, 3) == 0
    assert chosen_blocks(1_000_000, 1, 40) == 0
    assert chosen_blocks(1_000_000, 1, 64) == 0
    assert chosen_blocks(1_000, 64, 100) == 101
    assert chosen_blocks(20_000, 4, 60) == 0


@given(st.integers(1, 64), st.integers(1, 4096))
def test_blocks_hold_every_bit_once(words: int, blocks: int) -> None:
    bits = 64 * words
    parts = partition(bits, min(blocks, bits))
    assert parts.dtype == np.uint32
    assert parts[0, 0] == 0
    assert np.array_equal(parts[1:, 0], (parts[:, 0] + parts[:, 1])[:-1])
    assert parts[-1].sum() == bits
    assert np.ptp(parts[:, 1]) <= 1


@pytest.mark.parametrize("collapse", [False, True])
def test_pairs_of_a_batch_are_kept_by_their_sketches(
    rng: np.random.Generator, collapse: bool
) -> None:
    made = rng.integers(0, 1 << 64, (20, 5), dtype=np.uint64)[rng.integers(0, 20, 400)]
    flips = rng.random((400, 320)) < rng.uniform(0, 0.14, 400)[:, None]
    made ^= np.packbits(flips, axis=1).view(np.uint64)
    made[100:150] = made[:50]
    made[150:200, 0] = made[:50, 0]  # with other sketches
    rows, sketch = np.ascontiguousarray(made[:, :1]), np.ascontiguousarray(made[:, 1:])
    found = simindex.find_all(
        simindex.Batch(rows, sketch=sketch), similarity=0.9, recall=0.9, collapse_equal=collapse
    )
    near = np.bitwise_count(rows[:, None, 0] ^ rows[None, :, 0])
    far = np.bitwise_count(sketch[:, None] ^ sketch[None]).sum(axis=2, dtype=np.int64)
    a, b = np.nonzero(np.triu((near <= 13) & (far <= 36), 1))  # floor(256 arccos(0.9) / pi)
    left = np.ones(400, np.bool_)
    if collapse:
        left[100:150] = False
        assert isinstance(found, simindex.CollapsedPairs)
        assert list(found.groups) == [(row, row + 100) for row in range(50)]
    wanted = [
        (int(x), int(y), int(far[x, y])) for x, y in zip(a, b, strict=True) if left[x] and left[y]
    ]
    assert len(wanted) > 100
    assert [(x, y, d) for x, y, d, _, _ in found] == wanted
    assert found.similarity == pytest.approx(np.cos(np.pi * found.distance / 256), abs=1e-6)
    assert "kept within 36 of 256 bits" in found.guarantee


def test_a_similarity_without_sketches_is_a_radius(rng: np.random.Generator) -> None:
    rows = rng.integers(0, 1 << 20, 500, dtype=np.uint64)
    found, plain = simindex.find_all(rows, similarity=0.9), simindex.find_all(rows, h=12)
    assert list(zip(found.a, found.b, strict=True)) == list(zip(plain.a, plain.b, strict=True))
    assert found.similarity == pytest.approx(np.cos(np.pi * plain.distance / 64), abs=1e-6)
    collapsed = simindex.find_all(rows, similarity=0.9, collapse_equal=True)
    assert isinstance(collapsed, simindex.CollapsedPairs)
    recipe = simindex.Recipe(h=5)
    batch = recipe.batch(["one two three four", "one two three five", "six seven eight nine"])
    assert simindex.find_all(batch).a.tolist() == simindex.find_all(batch.rows, h=5).a.tolist()
    wrong: dict[str, Any]
    for wrong in ({"similarity": 0.9, "h": 3}, {"similarity": 0.2}, {"measure": "jaccard"},
                  {"recall": 0}):
        with pytest.raises(simindex.InvalidOption):
            simindex.find_all(rows, **wrong)
