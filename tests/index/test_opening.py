"""Writers that wait for their turn, and crawlers that share an index by it."""

from __future__ import annotations

import math
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.errors import IndexLocked, InvalidOption


@pytest.mark.parametrize("mode", ["w", "c"])
def test_a_writer_waits_until_the_index_is_free(index_path: Path, mode: Any) -> None:
    holder = simindex.open(index_path, "c")
    released: list[float] = []

    def release() -> None:
        time.sleep(0.2)
        released.append(time.monotonic())
        holder.close()

    thread = threading.Thread(target=release)
    thread.start()
    with simindex.open(index_path, mode, wait_s=60) as index:
        assert released and time.monotonic() >= released[0]
        index.append(np.arange(3, dtype=np.uint64))
    thread.join()
    assert len(simindex.open(index_path)) == 3


def test_waiting_ends(index_path: Path) -> None:
    with simindex.open(index_path, "c"):
        for wait_s in (0, 0.1):
            started = time.monotonic()
            with pytest.raises(IndexLocked):
                simindex.open(index_path, "w", wait_s=wait_s)
            assert time.monotonic() - started >= wait_s
        simindex.open(index_path, "r", wait_s=60).close()  # readers need no turn
    simindex.open(index_path, "w", wait_s=math.inf).close()


@pytest.mark.parametrize("wait_s", [-1, math.nan, "1", None, True])
def test_a_wrong_time_is_refused(index_path: Path, wait_s: Any) -> None:
    with pytest.raises(InvalidOption) as caught:
        simindex.open(index_path, "c", wait_s=wait_s)
    assert caught.value.data["option"] == "wait_s"
    assert not index_path.exists()


CRAWLER = textwrap.dedent("""
    import sys
    import numpy as np
    import simindex

    path, number, pages = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = np.random.default_rng(number)
    order = rng.permutation(pages)
    for part in np.array_split(order, 8):
        new = []
        with simindex.open(path, "c", wait_s=120) as index:
            for page in part.tolist():
                words = np.random.default_rng(page).integers(0, 1 << 20, 60)
                text = " ".join(f"w{word}" for word in words)
                if index.seen_or_add(text, key=f"page-{page}") is None:
                    new.append(page)
        print(*new, sep="\\n", flush=True)  # after the commit: what is printed is stored
""")


@pytest.mark.slow
def test_four_processes_that_take_turns_lose_and_double_nothing(index_path: Path) -> None:
    """All fetch the same pages in other orders; one of them is killed."""
    pages = 400
    crawlers = [
        subprocess.Popen(
            [sys.executable, "-c", CRAWLER, str(index_path), str(number), str(pages)],
            stdout=subprocess.PIPE, text=True,
        )
        for number in range(5)
    ]
    time.sleep(0.7)
    crawlers[4].kill()
    printed = [crawler.communicate(timeout=300)[0].split() for crawler in crawlers]
    assert [crawler.returncode for crawler in crawlers[:4]] == [0] * 4
    with simindex.open(index_path, "r") as index:
        stored = [key for batch in index.rows() for key in batch.keys or []]
        assert not index.check()
    assert sorted(stored) == sorted(f"page-{page}" for page in range(pages))
    told = [page for some in printed for page in some]
    assert len(told) == len(set(told)), "no page was new to two crawlers"
    # The killed one may have stored the pages of its last turn without telling.
    assert len(told) >= pages - pages // 8
