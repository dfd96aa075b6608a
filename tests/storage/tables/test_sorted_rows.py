"""The header directory of sorted rows: how wide it is, and when it is computed."""

from __future__ import annotations

import threading

import numpy as np

from simindex.storage.tables.sorted_rows import header_bits, sorted_by_all_words
from simindex.storage.tables.table import Table


def test_header_width_leaves_six_to_eleven_rows() -> None:
    for rows in (*range(200), 10**6, 10**9, 2**32 - 1):
        bits = header_bits(rows)
        assert 0 <= bits <= 30
        if 16 <= rows < 2**33:
            assert 2**2.5 <= rows / 2**bits * (1 if rows >= 1 << 22 else 0.5) <= 2**3.5


def test_directory_is_loaded_once_and_computed_where_there_is_none() -> None:
    words = np.arange(64, dtype=np.uint64) << np.uint64(58)
    calls: list[int] = []

    def load() -> None:
        calls.append(1)

    table = Table(
        "t", words[:, None], words, None, horizon=0, header_bits=2, load_directory=load
    )
    threads = [threading.Thread(target=lambda: table.directory) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == [1]
    assert table.directory.tolist() == [0, 16, 32, 48, 64]


def test_rows_that_share_the_first_word_are_sorted_by_the_others(
    rng: np.random.Generator,
) -> None:
    rows = rng.integers(0, 3, (200, 4), dtype=np.uint64)
    ordered, numbers = sorted_by_all_words(rows)
    assert ordered.tolist() == sorted(rows.tolist())
    assert (rows[numbers] == ordered).all() and len(set(numbers.tolist())) == len(rows)
    nothing, none = sorted_by_all_words(rows[:0])
    assert len(nothing) == len(none) == 0
