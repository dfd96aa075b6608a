"""Backups of an index that another process writes: each holds what exactly one commit does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import simindex
from reliability.backup_scenes import nothing_beside
from reliability.report import Pace
from reliability.trials import Fault, Say, Tally, forked, searched, workplace
from reliability.workloads import Rows, named_rows, rows_of, sizes_of
from simindex import Batch

WRITER = """
import sys
from reliability.backup_writers import committed
committed(sys.argv[1])
"""


def committed(path: str) -> None:
    """Commits, deletes and merges until it is killed; `expected` says what a commit holds."""
    options = simindex.IndexOptions(
        batch_rows=64, min_merge=2, structures=("psm", "bphs:G=4,g=1"), sketch_bits=64
    )
    with simindex.open(path, "c", options=options) as index:
        number = 0
        while True:
            _append_named(index, number)
            number += 1
            if number % 50 == 0:
                index.compact(full=number % 200 == 0)


def _append_named(index: simindex.Index, number: int) -> None:
    ids = np.arange(10 * number, 10 * number + 10, dtype=np.uint64)
    index.append(_named(ids))
    if number % 3 == 2:
        index.delete(ids=ids[:5] - np.uint64(20))
    index.commit()


def _named(ids: Any) -> Batch:
    """The rows of some ids, whose fingerprints, sketches and sizes follow from these."""
    values = ids * np.uint64(0x9E3779B97F4A7C15)
    return Batch(values, ids=ids, sketch=~values[:, None], features=sizes_of(ids))


def expected(number: int) -> Rows:
    """The rows after the append of this number."""
    gone = {10 * (n - 2) + k for n in range(2, number + 1, 3) for k in range(5)}
    ids = sorted(set(range(10 * number + 10)) - gone)
    return tuple(sorted(named_rows(_named(np.array(ids, np.uint64)))))


def beside(goal: int) -> Tally:
    """So many backups of an index that another process writes; each holds what one commit does."""
    tally = Tally()
    with workplace() as folder:
        writer: subprocess.Popen[bytes] | None = None
        pace = Pace("backups beside a writer", goal)
        try:
            for number in range(goal):
                if number % 100 == 0:  # anew, so that the index does not grow for ever
                    _end(writer)
                    shutil.rmtree(folder / "index", ignore_errors=True)
                    shutil.rmtree(folder / "backup", ignore_errors=True)
                    writer = subprocess.Popen(
                        [sys.executable, "-P", "-c", WRITER, str(folder / "index")],
                        env={**os.environ, "PYTHONPATH": searched()},
                    )
                    while not (folder / "index" / "FORMAT").exists():
                        time.sleep(0.01)
                pace.at(number)
                ended = forked(partial(_backed_up, folder, number % 10 == 0))
                if tally.judge(ended, f"backup {number}"):
                    tally.done += 1
                    tally.count("files linked or copied", ended.said[0])
        finally:
            _end(writer)
    return tally


def _end(writer: subprocess.Popen[bytes] | None) -> None:
    if writer is not None:
        writer.kill()
        writer.wait()


def _backed_up(folder: Path, verify: bool, say: Say) -> None:
    with simindex.open(folder / "index") as index:
        report = index.backup(folder / "backup", verify=verify)
    with simindex.open(folder / "backup") as backup:
        findings = backup.check()
        rows = rows_of(backup)
        if findings or backup.generation != report.generation:
            raise Fault("wrong", f"{findings}, commit {backup.generation}")
    right = expected(max(int(name) for name, _ in rows) // 10) if rows else ()
    if rows != right:
        raise Fault("lost", f"{len(rows)} rows, of which {len(set(rows) & set(right))} are among "
                            f"{len(right)} that are right")
    nothing_beside(folder)
    say(report.linked + report.kept + report.copied)
