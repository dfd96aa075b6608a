"""What must hold of an index on which a call was stopped: by an interrupt, a kill, an error.

    one_of        its rows are those before or after the call
    answers       a query is answered rightly
    opened_anew   the next writer opens it, and finds it whole, and nothing left over
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import simindex
from reliability.brute import Rows, held, within
from reliability.calls import ASKED, QUERIES, Call
from reliability.trials import Fault
from reliability.workloads import pages_left
from reliability.wreck import cleared
from simindex.errors import CorruptFile, IndexExists, IndexNotFound, SimindexError


def answers(index: Any, rows: Rows) -> None:
    """Raises Fault unless a query is answered as brute force answers it."""
    found = index.query(QUERIES, h=3)
    names = found.id.tolist() if found.keys() is None else found.keys()
    given = sorted(zip(found.query.tolist(), found.distance.tolist(), names, strict=True))
    if given != within(rows, ASKED, 3):
        raise Fault("wrong", f"a query is answered by {given}")


def one_of(rows: Rows, holds: set[Rows | None], what: str) -> None:
    """Raises Fault unless rows are what an index may hold; no rows also where there may be none."""
    if rows in holds or (not rows and None in holds):
        return
    missing = [len(Counter(one or ()) - Counter(rows)) for one in holds]
    more = [len(Counter(rows) - Counter(one or ())) for one in holds]
    raise Fault("lost" if all(missing) else "wrong",
                f"{what} {len(rows)} rows, {min(missing)} missing, {min(more)} too many")


OURS = {"FORMAT", "LOCK", "catalog", "segments"}


def opened_anew(call: Call, path: Path, holds: set[Rows | None]) -> None:
    """Opens the index for writing, as the next process would, and compares."""
    if call.method in FUNCTIONS:
        return
    try:
        if call.on == "wrecked":
            cleared(simindex.repair(path, apply=True), path)
        with _opened(call, path) as again:
            one_of(held(again), holds, "the index opened anew holds")
            if call.on == "empty" and not len(again) and (again.options.keys or again.recipe):
                raise Fault("wrong", "without any row the index has taken keys or a recipe")
            findings = again.check()
            pages = pages_left(again)
    except SimindexError as error:
        kind = "lost" if isinstance(error, (CorruptFile, IndexNotFound, IndexExists)) else "wrong"
        raise Fault(kind, f"the index cannot be opened anew: {error!r}") from error
    for finding in findings:
        raise Fault("wrong" if finding.severity == "error" else "leaked", str(finding))
    strays = {file.name for file in path.iterdir()} - OURS
    if strays or pages:
        raise Fault("leaked", f"left behind: {sorted(strays)}, {pages} pages")


FUNCTIONS = ("find_all", "find_clusters", "rotation_pairs", "hamming")


def _opened(call: Call, path: Path) -> simindex.Index:
    try:
        return simindex.open(path, "c")
    except IndexExists:
        if not call.arguments.get("overwrite"):
            raise
        # What is half removed is kept from who does not overwrite it; the same call goes on.
        return simindex.open(path, "n", overwrite=True)
