"""`compact` leaves few segments, with the structures that were asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from exported import keys_of

import simindex

Run = Callable[..., Any]


@contextmanager
def small_files() -> Iterator[simindex.Index]:
    """The index i.sim, with ten rows in five files, which the block may change."""
    options = simindex.IndexOptions(keys="str", batch_rows=8, min_merge=0)
    with simindex.open("i.sim", "n", options=options) as index:
        for first in range(0, 10, 2):
            values = np.arange(first, first + 2, dtype=np.uint64)
            index.append(values, keys=[f"k{value}" for value in values])
            index.commit()
        yield index


def test_compaction_leaves_one_segment_without_dead_rows(
    run: Run, objects: Any
) -> None:
    with small_files() as index:
        index.delete(keys=["k1"])
    (answer,) = objects(run("compact", "i.sim", "--full", "--json").stdout)
    assert (answer["segments_before"], answer["segments"]) == (5, 1)
    assert (answer["rows"], answer["dead_rows"]) == (9, 0)
    assert "in " in run("compact", "i.sim").stderr
    assert len(keys_of(run, objects, "i.sim")) == 9
    assert run("check", "i.sim").stdout == ""


def test_what_was_done_is_told_of_files_and_live_rows(run: Run) -> None:
    """Deleted rows are no rows that became a file, and are told of where they stay."""
    with small_files() as index:
        index.compact(full=True)
        index.delete(keys=["k1"])
    told = run("compact", "i.sim").stderr
    assert "simindex: nothing to merge; i.sim holds 9 rows, and 1 deleted row whose space " in told
    assert "`simindex compact i.sim --full` frees" in told
    told = run("compact", "i.sim", "--full").stderr
    assert re.search(
        "simindex: merged 1 file of [0-9]+ kB into 1 file of [0-9]+ kB; 1 deleted row removed; "
        "i.sim holds 9 rows, in ", told
    )
    assert "simindex: nothing to merge; i.sim holds 9 rows, in" in run("compact", "i.sim").stderr


def test_rows_that_wait_are_told_as_those_of_the_last_commits(run: Run) -> None:
    with simindex.open("i.sim", "n", options=simindex.IndexOptions(keys="str")) as index:
        index.append(np.arange(9, dtype=np.uint64), keys=[f"k{value}" for value in range(9)])
    run("delete", "i.sim", *(f"--key=k{value}" for value in range(6)))
    told = run("compact", "i.sim", "--structures", "psm").stderr
    assert "merged the rows of the last commits into 1 file of" in told
    assert "6 deleted rows removed; i.sim holds 3 rows, in" in told


def test_slice_lists_are_added_shown_and_dropped(
    run: Run, keyed: str, objects: Any, tmp_path: Path
) -> None:
    (answer,) = objects(run("compact", keyed, "--full", "--structures", "issl", "--json").stdout)
    (file,) = (tmp_path / keyed).rglob("*.issl")
    assert answer["structures"] == {"psm": 0, "issl": file.stat().st_size}
    (held,) = objects(run("stats", keyed, "--json").stdout)
    assert held["structures"] == answer["structures"]
    assert held["segment_list"][0]["structures"] == {"issl": file.stat().st_size}
    table = dict(line.split(maxsplit=1) for line in run("stats", keyed, "-v").stdout.splitlines())
    assert table["structures"].startswith("psm, issl ")
    assert run("check", keyed).stdout == ""
    file.write_bytes(file.read_bytes()[:-1])
    assert file.name in run("check", keyed, code=3).stdout
    assert len(keys_of(run, objects, keyed)) == 10
    run("compact", keyed, "--structures", "psm")
    assert list((tmp_path / keyed).rglob("*.issl")) == []
    assert "issl:w=8" in run("compact", keyed, "--structures", "issl:w=9", code=2).stderr


def test_rows_that_wait_get_structures_too(run: Run, write_jsonl: Callable[..., Path]) -> None:
    """Else nothing is built for them, and a query by the new tables compares every row."""
    texts = [{"id": f"k{n}", "text": f"{n} some text that is number {n} of ten"} for n in range(10)]
    run("build", "i.sim", write_jsonl("a.jsonl", texts))
    run("compact", "i.sim", "--structures", "bphs:G=4,g=1")
    told = run("query", "i.sim", "a.jsonl", "--method", "bphs:G=4,g=1", "-d", 3).stderr
    assert "(bphs:G=4,g=1, exact)" in told
    assert run("check", "i.sim").stdout == ""


def test_structures_are_built_listed_and_dropped(
    run: Run, write_jsonl: Callable[..., Path], objects: Any
) -> None:
    """Commas stand in the names of designs as well as between them."""
    texts = [{"id": f"k{n}", "text": f"{n} some text that is number {n} of ten"} for n in range(10)]
    path = write_jsonl("a.jsonl", texts)
    run("build", "i.sim", path, "--batch-rows", 8, "--structures", "psm,bphs:G=5,g=2,bphs:G=4,g=1")

    def held() -> dict[str, int]:
        (answer,) = objects(run("stats", "i.sim", "--json").stdout)
        structures: dict[str, int] = answer["structures"]
        return structures

    assert list(held()) == ["psm", "bphs:G=5,g=2", "bphs:G=4,g=1"]
    assert held()["psm"] == 0 < held()["bphs:G=4,g=1"] <= held()["bphs:G=5,g=2"]
    asked = ("query", "i.sim", "--text", texts[3]["text"], "-d", 3)
    shown = run(*asked, "--method", "bphs:G=5,g=2")
    assert "k3" in shown.stdout
    assert "bphs:G=5,g=2" in shown.stderr
    run("compact", "i.sim", "--structures", "bphs:nested=4x4,r=1")
    assert list(held()) == ["psm", "bphs:nested=4x4,r=1"]
    assert "bphs:nested=4x4,r=1" in run("stats", "i.sim", "-v").stdout
    for wrong in ("trie", "bphs:G=5", "psm,,", "bphs:G=4,g=1,bphs:G=4,g=1", "g=2,bphs:G=5", ""):
        assert "structures" in run("compact", "i.sim", "--structures", wrong, code=2).stderr
    assert "G=70" in run("compact", "i.sim", "--structures", "bphs:G=70,g=1", code=2).stderr
    run("build", "i.sim", path, "--append", "--structures", "psm", code=2)
    assert list(held()) == ["psm", "bphs:nested=4x4,r=1"]
    assert run("check", "i.sim").stdout == ""
