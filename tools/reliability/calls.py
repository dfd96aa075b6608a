"""Every public call with every argument that takes another path: the table of the fault trials.

    CALLS         rows: method and arguments, the index it needs, what it does, what it answers
    undisturbed   makes the call of a row on a stage, and judges its answer
    allowed       what an index may hold when a call was stopped on its way

The trials of interrupts, kills, refused calls and full disks each go through the rows. A row holds
what is passed by name, so that coverage.py compares it with the signatures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

import simindex
from reliability import brute
from reliability.brute import Answer, Rows, named
from reliability.stages import (
    DELETED,
    FIRST,
    FIRST_CAME,
    GATE,
    KEYED,
    KEYED_H,
    LARGE,
    ONE,
    PLAIN,
    RUNS_S,
    SMALL,
    Effect,
    Mode,
    Model,
    Stage,
    adding,
    backup_of,
    batch,
    built,
    chain,
    committed,
    discarded,
    keyed,
    moment,
    ready,
    replacing,
    same,
    staged,
    text,
    value,
    without,
)
from reliability.trials import Tally, parts_of, workplace
from simindex import Batch, IndexOptions
from simindex.query.arrangement import joined
from simindex.storage.files.checksums import VERIFY


def any_answer(found: Any, rows: Rows) -> str:
    """Nothing is said of what it returns."""
    return ""


@dataclass(frozen=True, slots=True)
class Call:
    """A row of the table."""

    method: str
    """Of Index, or a function of the package; `open` and `repair` get the path of the specimen."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    on: str = "plain"
    """The specimen."""
    mode: Mode = "w"
    """Of the handle, if there is one."""
    states: tuple[str, ...] = ()
    effect: Effect = same
    """What a call that returns does to the model."""
    answer: Answer = any_answer
    gate: bool = False
    """Whether merges that wait go on while the call does, because it waits for them."""

    @property
    def name(self) -> str:
        """As it is printed."""
        given = ", ".join(f"{name}={_short(what)}" for name, what in self.arguments.items())
        where = ", ".join([*(["keyed"] if self.on == "keyed" else []), *self.states,
                           *([self.on] if self.on not in ("plain", "keyed") else []),
                           *(["reader"] if self.mode == "r" else [])])
        return f"{self.method}({given})" + (f" [{where}]" if where else "")

    @property
    def writes(self) -> bool:
        """Whether it may change the index."""
        return self.mode == "w" or (self.mode == "" and self.method in ("open", "repair"))

    def made(self, stage: Stage) -> Any:
        """Makes the call and returns what it does, iterators as lists."""
        given = dict(self.arguments)
        if self.method == "backup":
            given["path"] = backup_of(stage.path)
        if self.mode:
            if isinstance(getattr(type(stage.index), self.method), property):
                return getattr(stage.index, self.method)
            found = getattr(stage.index, self.method)(**given)
        elif self.method in LOCATED:
            found = getattr(simindex, self.method)(path=stage.path, **given)
        else:
            found = getattr(simindex, self.method)(**given)
        return list(found) if isinstance(found, Iterator) else found


RESEMBLANCE = 0.98 / (2 - 0.98)
"""The Jaccard resemblance of sets of equal size whose cosine is SIMILARITY."""

SIMILARITY, RADIUS, KEPT = 0.98, 6, 8
"""A similarity, the radius within which 0.85 of such pairs are, and the distance of sketches of 128
bits that it keeps."""

TEXTS = [f"one two three four five six seven {number // 2}" for number in range(10)]
"""Of which some are near to each other."""

LOCATED = ("open", "repair")
"""Functions that get the path of the specimen."""

ENDING = ("close", "__exit__")
"""Methods after which a handle is closed."""


def _short(what: object) -> str:
    if what is None or isinstance(what, (bool, int, float, str, tuple, datetime, timedelta)):
        return repr(what)
    if isinstance(what, (Batch, np.ndarray)):
        return f"<{len(what)}>" if getattr(what, "weights", None) is None else f"<{len(what)}, W>"
    return "..."


def undisturbed(call: Call, stage: Stage) -> tuple[Model, str]:
    """The model after a call that nothing disturbs, and what was wrong with it, or ""."""
    found = call.made(stage)
    wrong = call.answer(found, stage.model.durable or ())
    if call.method == "open":
        stage.others.append(found)
    return call.effect(stage.model), wrong


def allowed(call: Call, before: Model) -> set[Rows | None]:
    """What the index may hold once the call was stopped: all of it, nothing of it, or that and a
    commit of what waited before."""
    after = call.effect(before)
    if call.method == "open" and call.arguments.get("overwrite"):
        return {before.durable, None, after.durable}
    if after.durable == before.durable:
        return {before.durable}
    return {before.durable, before.waiting if before.durable is not None else None, after.durable}


def closed_with(call: Call, model: Model) -> Rows | None:
    """What the index holds once a call has ended well, and its handle was closed."""
    if not call.writes:
        return model.durable
    after = call.effect(model)
    return after.waiting if call.mode == "w" else after.durable


# -- what is asked ---------------------------------------------------------------------------------

ASKED = (value(1), value(2, 5), value(3), value(77))
QUERIES = np.array(ASKED, np.uint64)
WEIGHTED = Batch(QUERIES, weights=np.ones((4, 64), np.float32))
KEYED_QUERIES = keyed(1, 3, 8)
KEYED_ASKED = tuple(KEYED_QUERIES.rows[:, 0].tolist())
OTHERS = ("psm", "bphs:G=2,g=1,r=1")
NEAR = {"auto": 3, "psm": 3, "bphs": 1, "issl": 3, "scan": 3}
"""Methods, with an h that they answer on the specimens."""
METHODS = tuple(NEAR)
ROOM = 1 << 26


def progress(done: int, total: int) -> None:
    """Is told how far a call is."""


def stated(found: Any, rows: Rows) -> str:
    """Of `Index.stats`."""
    return "" if found.rows == len(rows) else f"stats tell of {found.rows} rows of {len(rows)}"


def metered(found: Any, rows: Rows) -> str:
    """Of `Index.metrics`."""
    live = re.search(r"^simindex_live_rows\{.*\} (\d+)$", found, re.M)
    told = None if live is None else int(live[1])
    return "" if told == len(rows) else f"metrics tell of {told} rows of {len(rows)}"


def counted(found: Any, rows: Rows) -> str:
    """Of `len`."""
    return "" if found == len(rows) else f"{found} rows instead of {len(rows)}"


def listed(found: Any, rows: Rows) -> str:
    """Of `Index.rows`."""
    given = tuple(sorted(row for part in found for row in named(part)))
    return "" if given == rows else f"{len(given)} rows instead of {len(rows)}"


def listed_once(found: Any, rows: Rows) -> str:
    """Clusters that list each document."""
    keys = found.keys()
    return "" if sorted(keys) == sorted({name for name, _ in rows}) else f"listed {keys}"


def has(*names: Any) -> Answer:
    """Of `contains`, and of `in`."""
    def judge(found: Any, rows: Rows) -> str:
        there = {name for name, _ in rows}
        given = [found] if isinstance(found, bool) else found.tolist()
        return "" if given == [name in there for name in names] else f"{given} of {names}"

    return judge


def got(name: Any) -> Answer:
    """Of `get`."""
    def judge(found: Any, rows: Rows) -> str:
        given = [] if found in (None, "none") else sorted(found.rows[:, 0].tolist())
        expected = sorted(number for other, number in rows if other == name)
        return "" if given == expected else f"{given} instead of {expected}"

    return judge


def clean(found: Any, rows: Rows) -> str:
    """Of `Index.check`."""
    wrong = [one for one in found if one.severity == "error"]
    return f"check finds {wrong[0]}" if wrong else ""


def backed_up(found: Any, rows: Rows) -> str:
    """Of `Index.backup`: the backup is whole, and holds what is committed."""
    with simindex.open(found.path) as copy:
        return clean(copy.check(), rows) or listed(list(copy.rows()), rows)


def named_rows(*names: Any) -> Answer:
    """Of `append` and `replace`, which return ids."""
    return lambda found, rows: "" if found.tolist() == list(names) else f"ids {found.tolist()}"


def opened(found: Any, rows: Rows) -> str:
    """Of `simindex.open`."""
    return "" if isinstance(found, simindex.Index) else f"{found!r} is not an index"


def is_true(found: Any, rows: Rows) -> str:
    """Of what returns True."""
    return "" if found is True else f"{found!r} is not True"


def is_none(found: Any, rows: Rows) -> str:
    """Of what returns None."""
    return "" if found is None else f"{found!r} is not None"


def a_match(name: Any, distance: int) -> Answer:
    """Of `seen_or_add` that has seen its row."""
    def judge(found: Any, rows: Rows) -> str:
        good = found is not None and name in (found.key, found.id) and found.distance == distance
        return "" if good else f"seen {found!r}"

    return judge


def _streamed(
    asked: tuple[int, ...], h: int, *, first: bool = False, some: bool = False
) -> Answer:
    """Of `query_stream`, whose parts together are what `query` answers."""
    judge = brute.wrong_matches(asked, h, first=first, some=some)
    return lambda found, rows: judge(joined(found), rows)


def _gated(asked: tuple[int, ...], h: int, *, some: bool = False) -> Answer:
    """Of `gate`, whose matches are what `query` answers."""
    judge = brute.wrong_matches(asked, h, some=some)

    def judged(found: Any, rows: Rows) -> str:
        if found.passed != found.limits.passes(found.documents, found.matched):
            return f"passed is {found.passed}, of {found.matched} matches"
        return judge(found.matches, rows)

    return judged


def mended(found: Any, rows: Rows) -> str:
    """Of `repair` of an index that lost nothing."""
    return f"losses {found.losses}" if found.losses or found.lost_rows else ""


# -- the table -------------------------------------------------------------------------------------


def _questions() -> Iterator[Call]:
    """What changes nothing, asked of a reader."""
    for method in METHODS:
        h = NEAR[method]
        yield Call("query", {"batch": QUERIES, "h": h, "method": method}, mode="r",
                   answer=brute.wrong_matches(ASKED, h))
        yield Call("query_stream", {"batch": QUERIES, "h": h, "method": method}, mode="r",
                   answer=_streamed(ASKED, h))
        yield Call("explain", {"batch": QUERIES, "h": h, "method": method}, mode="r")
    yield Call("query", {"batch": QUERIES, "first": True}, mode="r",
               answer=brute.wrong_matches(ASKED, 3, first=True))
    yield Call("query", {"batch": QUERIES, "first": False}, mode="r",
               answer=brute.wrong_matches(ASKED, 3))
    yield Call("query", {"batch": WEIGHTED, "recall": 0.8}, mode="r",
               answer=brute.wrong_matches(ASKED, 3, some=True))
    yield Call("query", {"batch": QUERIES, "limit": 1 << 20}, mode="r",
               answer=brute.wrong_matches(ASKED, 3))
    for method, judged in (("query", brute.wrong_matches), ("query_stream", _streamed)):
        yield Call(method, {"batch": QUERIES, "h": None, "similarity": SIMILARITY}, mode="r",
                   answer=judged(ASKED, RADIUS))
        yield Call(method, {"batch": QUERIES, "h": None, "similarity": RESEMBLANCE,
                            "measure": "jaccard"}, mode="r", answer=judged(ASKED, RADIUS))
    yield Call("query_stream", {"batch": QUERIES}, mode="r", answer=_streamed(ASKED, 3))
    yield Call("query_stream", {"batch": QUERIES, "first": True}, mode="r",
               answer=_streamed(ASKED, 3, first=True))
    yield Call("query_stream", {"batch": QUERIES, "first": False, "memory": ROOM}, mode="r",
               answer=_streamed(ASKED, 3))
    yield Call("query_stream", {"batch": WEIGHTED, "recall": 0.8, "threads": 2}, mode="r",
               answer=_streamed(ASKED, 3, some=True))
    yield Call("query_stream", {"batch": QUERIES, "limit": 1 << 20, "memory_limit": ROOM}, mode="r",
               answer=_streamed(ASKED, 3))
    yield Call("query", {"batch": QUERIES, "memory": ROOM}, mode="r",
               answer=brute.wrong_matches(ASKED, 3))
    yield Call("query", {"batch": QUERIES, "memory_limit": ROOM}, mode="r",
               answer=brute.wrong_matches(ASKED, 3))
    yield Call("query", {"batch": WEIGHTED, "memory_limit": ROOM, "recall": 0.8}, mode="r",
               answer=brute.wrong_matches(ASKED, 3, some=True))
    yield Call("query", {"batch": QUERIES, "threads": 2, "method": "scan"}, mode="r",
               answer=brute.wrong_matches(ASKED, 3))
    yield Call("gate", {"documents": QUERIES, "h": 3, "limit": 1 << 20, "threads": 2}, mode="r",
               answer=_gated(ASKED, 3))
    yield Call("gate", {"documents": QUERIES, "h": None, "similarity": SIMILARITY, "recall": 1.0,
                        "limit": None, "max_matches": 1 << 20, "max_share": 0.5,
                        "memory_limit": ROOM}, mode="r", answer=_gated(ASKED, RADIUS))
    yield Call("gate", {"documents": QUERIES, "similarity": RESEMBLANCE, "measure": "jaccard",
                        "recall": 1.0, "limit": None}, mode="r", answer=_gated(ASKED, RADIUS))
    yield Call("query", {"batch": KEYED_QUERIES}, on="keyed", mode="r",
               answer=brute.wrong_matches(KEYED_ASKED, KEYED_H))
    yield Call("query", {"batch": KEYED_QUERIES, "h": None}, on="keyed", mode="r",
               answer=brute.wrong_matches(KEYED_ASKED, KEYED_H))
    for method in ("auto", "scan", "issl"):
        yield Call("top", {"batch": QUERIES, "k": 3, "method": method}, mode="r",
                   answer=brute.wrong_top(ASKED, 3, some=method == "issl"))
        yield Call("explain_top", {"batch": QUERIES, "k": 3, "method": method}, mode="r")
    yield Call("top", {"batch": QUERIES, "k": 2, "max_error": 4, "rerank": 8, "method": "issl"},
               mode="r", answer=brute.wrong_top(ASKED, 2, some=True))
    yield Call("top", {"batch": QUERIES, "k": 2, "max_error": "auto", "recall": 0.9}, mode="r",
               answer=brute.wrong_top(ASKED, 2, some=True))
    yield Call("top", {"batch": QUERIES, "k": 2, "threads": 2, "method": "scan"}, mode="r",
               answer=brute.wrong_top(ASKED, 2))
    yield Call("top", {"batch": KEYED_QUERIES, "k": 2}, on="keyed", mode="r",
               answer=brute.wrong_top(KEYED_ASKED, 2))
    yield Call("explain_top", {"batch": QUERIES, "k": 2, "max_error": "auto", "recall": 0.9,
                               "rerank": 8}, mode="r")
    yield Call("explain", {"batch": WEIGHTED, "recall": 0.8, "memory": ROOM}, mode="r")
    yield Call("explain", {"batch": QUERIES, "h": None, "similarity": SIMILARITY,
                           "measure": "cosine"}, mode="r")
    for arguments in ({"h": 3}, {"method": "auto"}, {"method": "blocks"}, {"memory_limit": ROOM},
                      {"threads": 2}, {"progress": progress}, {"collapse_equal": False}):
        yield Call("pairs", arguments, mode="r", answer=brute.wrong_pairs(3))
    yield Call("pairs", {"collapse_equal": True}, mode="r", answer=brute.wrong_collapsed(3))
    yield Call("pairs", on="keyed", mode="r", answer=brute.wrong_pairs(KEYED_H))
    yield Call("pairs", {"similarity": RESEMBLANCE, "measure": "jaccard", "recall": 0.85}, mode="r",
               answer=brute.wrong_pairs(RADIUS))
    yield Call("clusters", {"similarity": RESEMBLANCE, "measure": "jaccard", "recall": 0.85},
               mode="r",
               answer=brute.wrong_clusters(RADIUS))
    near = brute.near_by_sketches(RADIUS, KEPT)
    yield Call("query", {"batch": KEYED_QUERIES, "h": None, "similarity": SIMILARITY},
               on="keyed", mode="r", answer=brute.wrong_similar(KEYED_ASKED, near))
    for collapse in (False, True):
        yield Call("pairs", {"similarity": SIMILARITY, "collapse_equal": collapse}, on="keyed",
                   mode="r", answer=brute.wrong_similar_pairs(near))
    for mode in ("components", "star"):
        yield Call("clusters", {"similarity": SIMILARITY, "mode": mode}, on="keyed", mode="r",
                   answer=listed_once)
    texts = {f"key{number}": text for number, text in enumerate(TEXTS)}
    yield Call("clusters", {"similarity": SIMILARITY, "texts": texts}, on="keyed", mode="r",
               answer=listed_once)
    for mode in ("components", "star"):
        yield Call("clusters", {"h": 3, "mode": mode}, mode="r",
                   answer=brute.wrong_clusters(3, star=mode == "star"))
        yield Call("clusters", {"mode": mode, "memory_limit": ROOM, "progress": progress,
                                "threads": 2}, mode="r",
                   answer=brute.wrong_clusters(3, star=mode == "star"))
    for singletons in (False, True):
        yield Call("clusters", {"singletons": singletons}, mode="r",
                   answer=brute.wrong_clusters(3, singletons=singletons))
    yield Call("clusters", {"mode": "components"}, on="keyed", mode="r",
               answer=brute.wrong_clusters(KEYED_H, star=False))
    yield Call("clusters", {"prefer": [6, 1]}, mode="r",
               answer=brute.wrong_clusters(3, preferred=(6, 1)))
    yield Call("contains", {"ids": [1, 6, 77]}, mode="r", answer=has(1, 6, 77))
    yield Call("contains", {"keys": ["key1", "key2"]}, on="keyed", mode="r",
               answer=has("key1", "key2"))
    yield Call("__contains__", {"name": 1}, mode="r", answer=has(1))
    yield Call("get", {"name": 1}, mode="r", answer=got(1))
    yield Call("get", {"name": 6, "default": "none"}, mode="r", answer=got(6))
    yield Call("get", {"name": "key1"}, on="keyed", mode="r", answer=got("key1"))
    yield Call("calibrate", {"documents": TEXTS, "similarity": 0.7, "recall": 0.9,
                             "precision": 0.5, "sample": 8, "seed": 1, "threads": 1,
                             "progress": progress}, on="empty", mode="r")
    yield Call("advice", mode="r")
    yield Call("explain_pair", {"ids": [1, 1], "h": 3}, mode="r")
    yield Call("explain_pair", {"keys": ["key1", "key1"]}, on="keyed", mode="r")
    for measure in ("cosine", "jaccard"):
        yield Call("explain_pair", {"ids": [1, 1], "similarity": RESEMBLANCE, "measure": measure},
                   mode="r")
    yield Call("explain_pair", {"a": "one two", "b": "one three"}, on="empty", mode="r")
    yield Call("rows", mode="r", answer=listed)
    yield Call("rows", {"chunk_rows": 3}, on="keyed", mode="r", answer=listed)
    yield Call("__len__", mode="r", answer=counted)
    yield Call("stats", mode="r", answer=stated)
    for skew in (False, True):
        yield Call("stats", {"skew": skew}, mode="r", answer=stated)
    for calls_too in (False, True):
        yield Call("metrics", {"calls": calls_too}, mode="r", answer=metered)
    yield Call("check", mode="r", answer=clean)
    yield Call("check", {"progress": progress}, mode="r", answer=clean)
    for verify in (False, True):
        yield Call("backup", {"verify": verify}, mode="r", answer=backed_up)
    yield Call("backup", {"progress": progress}, on="keyed", mode="r", answer=backed_up)
    yield Call("audit", {"h": 3, "recall": 0.8, "sample": 8, "threads": 2}, mode="r")
    yield Call("audit", {"method": "psm"}, mode="r")
    yield Call("tune", {"h": 3, "machine": False}, mode="r")
    yield Call("tune", {"machine": True}, mode="r")
    yield Call("refresh", mode="r")
    yield Call("refresh", mode="r", states=("behind",))
    yield Call("close", mode="r")
    yield Call("__bool__", mode="r", answer=is_true)
    for name in ("generation", "machine", "recipe", "h", "__repr__", "__enter__", "__reduce__"):
        yield Call(name, mode="r")
    yield Call("__exit__", LEFT_CLEANLY, mode="r")


LEFT_CLEANLY: dict[str, Any] = {"kind": None, "error": None, "trace": None}
LEFT_BY_ERROR: dict[str, Any] = {"kind": ValueError, "error": ValueError("of the caller"),
                                 "trace": None}


def _questions_to_writers() -> Iterator[Call]:
    """The same of a handle that has something else in hand."""
    for states in (("buffered",), ("spilled",), ("deleting",), ("recent",)):
        yield Call("contains", {"ids": [1, 2, 41]}, states=states)
        yield Call("get", {"name": 51}, states=states)
    for states in (("buffered",), ("recent",), ("merging",), ("merged",)):
        yield Call("query", {"batch": QUERIES}, states=states,
                   answer=brute.wrong_matches(ASKED, 3))
        yield Call("check", states=states, answer=clean, gate=True)
        yield Call("backup", states=states, answer=backed_up)
        yield Call("rows", states=states, answer=listed)
        yield Call("stats", states=states, answer=stated)
        yield Call("metrics", states=states, answer=metered)
    yield Call("refresh", states=("merged",))
    yield Call("audit", {"recall": 0.8}, states=("buffered",))
    yield Call("tune", {"machine": False}, states=("buffered",))
    yield Call("tune", {"machine": True}, states=("buffered",))


VALUES = np.array([value(71), value(72)], np.uint64)
NAMED = batch({71: value(71), 72: value(72)})
FIRST_NAMED = Batch(VALUES, keys=["a71", "a72"])
NAMED_KEYED = keyed(71, 72, key="a")
LARGE_KEYED = keyed(*range(60, 80))
PLAIN_WEIGHTS = np.ones((2, 64), np.float32)
REPLACED = batch({3: value(91), 12: value(92), 93: value(93)})
REPLACED_KEYED = keyed(1, 7, 94)
REPLACED_BUFFERED = batch({41: value(95)})


def _additions() -> Iterator[Call]:
    """Rows come."""
    for states in ((), ("buffered",), ("spilled",), ("recent",), ("merging",), ("merged",)):
        yield Call("append", {"batch": NAMED}, states=states, effect=adding(NAMED),
                   answer=named_rows(71, 72))
        yield Call("append", {"batch": LARGE}, states=states, effect=adding(LARGE))
    yield Call("append", {"batch": VALUES, "ids": [71, 72], "weights": PLAIN_WEIGHTS},
               effect=adding(NAMED), answer=named_rows(71, 72))
    yield Call("append", {"batch": NAMED_KEYED}, on="keyed", effect=adding(NAMED_KEYED))
    yield Call("append", {"batch": LARGE_KEYED}, on="keyed", states=("recent",),
               effect=adding(LARGE_KEYED))
    for states in ((), ("spilled",), ("merging",)):
        yield Call("replace", {"batch": REPLACED}, states=states, effect=replacing(REPLACED),
                   answer=named_rows(3, 12, 93))
    yield Call("replace", {"batch": REPLACED_BUFFERED}, states=("buffered",),
               effect=replacing(REPLACED_BUFFERED))
    yield Call("replace", {"batch": REPLACED_KEYED}, on="keyed", effect=replacing(REPLACED_KEYED))
    yield Call("delete", {"ids": [1, 14, 14, 77]}, effect=without(1, 14), answer=lambda n, _: ""
               if n == 2 else f"{n} documents went away")
    yield Call("delete", {"ids": [7]}, states=("buffered", "deleting"), effect=without(7))
    yield Call("delete", {"ids": [41, 1]}, states=("buffered",), effect=without(41, 1))
    yield Call("delete", {"keys": ["key3", "key10"]}, on="keyed",
               effect=without("key3", "key10"))


def _expirations() -> Iterator[Call]:
    """Rows go by their age: each part of the first ones came at a time of its own."""
    def one(count: int, older_than: Any = None, states: tuple[str, ...] = (), *, more: int = 0
            ) -> Call:
        gone = [name for part in FIRST[:count] for name, _ in named(part)]
        given = moment(FIRST_CAME[count - 1] + 1) if older_than is None else older_than
        rows = len(gone) - len({*gone} & {*DELETED}) - more
        return Call("expire", {"older_than": given}, on="aged", states=states,
                    effect=without(*gone), answer=lambda found, _: ""
                    if found == rows else f"{found} rows went away instead of {rows}")

    yield one(1)
    yield one(2)
    for age in (timedelta(days=14_000), 14_000 * 86_400.0):
        yield one(3, age)
    for state in ("buffered", "spilled", "recent", "merging", "merged"):
        yield one(2, states=(state,))
    yield one(2, states=("deleting",), more=1)
    yield one(2, states=("spilled", "expiring"), more=len(FIRST[0]) - 1)
    for before in ((), ("spilled",), ("merging",)):
        states = *before, "expiring"
        yield Call("commit", on="aged", states=states, effect=committed)
        yield Call("compact", {"full": True}, on="aged", states=states, effect=committed)
    yield Call("discard", on="aged", states=("expiring",), effect=discarded)
    yield Call("append", {"batch": LARGE}, on="aged", states=("expiring",), effect=adding(LARGE))


def _ingests() -> Iterator[Call]:
    """Rows come and are looked for in one step."""
    def one(arguments: Mapping[str, Any], added: Batch = SMALL, *, on: str = "plain",
            states: tuple[str, ...] = (), first: bool = False, some: bool = False) -> Call:
        h = arguments.get("h", KEYED_H if on == "keyed" else 3)
        answer = brute.wrong_ingest(added, h, first=first, some=some)
        return Call("ingest", arguments, on=on, states=states,
                    effect=chain(committed, adding(added), committed),
                    answer=any_answer if {"buffered", "recent"} & set(states) else answer)

    yield one({"batch": SMALL})
    yield one({"batch": LARGE}, LARGE)
    for states in (("buffered",), ("deleting",), ("recent",), ("merging",), ("merged",)):
        yield one({"batch": NAMED}, NAMED, states=states)
    for method in METHODS:
        yield one({"batch": SMALL, "h": NEAR[method], "method": method})
    for first in (False, True):
        yield one({"batch": SMALL, "first": first}, first=first)
    yield one({"batch": SMALL, "recall": 0.8}, some=True)
    yield one({"batch": SMALL, "memory_limit": ROOM})
    yield Call("ingest", {"batch": SMALL, "h": None, "similarity": RESEMBLANCE,
                          "measure": "jaccard"},
               effect=chain(committed, adding(SMALL), committed),
               answer=brute.wrong_ingest(SMALL, RADIUS))
    yield one({"batch": SMALL, "threads": 2, "method": "scan"})
    yield one({"batch": VALUES, "ids": [71, 72], "weights": PLAIN_WEIGHTS}, NAMED)
    yield one({"batch": NAMED_KEYED}, NAMED_KEYED, on="keyed")
    yield Call("ingest", {"batch": NAMED_KEYED, "h": None, "similarity": SIMILARITY}, on="keyed",
               effect=chain(committed, adding(NAMED_KEYED), committed))
    yield Call("ingest", {"batch": VALUES, "keys": ["a71", "a72"]}, on="empty",
               effect=chain(adding(FIRST_NAMED), committed))


def _beginnings() -> Iterator[Call]:
    """The first rows of an index, which decide whether it has keys; and calls while they wait."""
    added = keyed(41, 42)
    for states in ((), ("deleting",), ("tuned",)):
        yield Call("append", {"batch": added}, on="empty", states=states, effect=adding(added))
        yield Call("seen_or_add", {"text_or_batch": text(51), "key": "key51"}, on="empty",
                   states=states, effect=chain(committed, adding(keyed(51))), answer=is_none)
    yield Call("append", {"batch": VALUES, "keys": ["a71", "a72"]}, on="empty",
               effect=adding(FIRST_NAMED))
    yield Call("append", {"batch": ONE}, on="empty", effect=adding(ONE))
    yield Call("append", {"batch": LARGE_KEYED}, on="empty", effect=adding(LARGE_KEYED))
    yield Call("replace", {"batch": added}, on="empty", effect=adding(added))
    yield Call("seen_or_add", {"text_or_batch": ONE}, on="empty", effect=adding(ONE),
               answer=is_none)
    for rows in (added, LARGE_KEYED, ONE):
        yield Call("ingest", {"batch": rows}, on="empty", effect=chain(adding(rows), committed),
                   answer=brute.wrong_ingest(rows, 3))
    yield Call("append", {"batch": added}, on="empty", states=("named",), effect=adding(added))
    yield Call("replace", {"batch": keyed(31, 43)}, on="empty", states=("named",),
               effect=replacing(keyed(31, 43)))
    yield Call("ingest", {"batch": added}, on="empty", states=("named",),
               effect=chain(committed, adding(added), committed))
    yield Call("seen_or_add", {"text_or_batch": text(51), "key": "key51"}, on="empty",
               states=("named",), effect=chain(committed, adding(keyed(51))), answer=is_none)
    yield Call("delete", {"keys": ["key31", "none"]}, on="empty", states=("named",),
               effect=without("key31"))
    yield Call("contains", {"keys": ["key31"]}, on="empty", states=("named",))
    yield Call("get", {"name": "key31"}, on="empty", states=("named",))
    for method in ("query", "commit", "compact", "discard", "close"):
        for more in ((), ("recent",)):
            yield Call(method, {"batch": KEYED_QUERIES} if method == "query" else {}, on="empty",
                       states=("named", *more), effect=same if method == "query" else discarded
                       if method == "discard" else committed, gate=method == "compact")


def _admissions() -> Iterator[Call]:
    """One document, unless there is one like it."""
    yield Call("seen_or_add", {"text_or_batch": ONE}, effect=adding(ONE), answer=is_none)
    yield Call("seen_or_add", {"text_or_batch": ONE, "h": None, "similarity": 1.0,
                               "measure": "jaccard"},
               effect=adding(ONE), answer=is_none)
    yield Call("seen_or_add", {"text_or_batch": batch({52: value(1)}), "h": 3, "recall": 0.8})
    yield Call("seen_or_add", {"text_or_batch": batch({52: value(51)}), "h": 1},
               states=("recent",), answer=a_match(51, 0))
    yield Call("seen_or_add", {"text_or_batch": Batch(VALUES[:1]), "key": 71, "commit_s": None},
               states=("recent",), effect=adding(batch({71: value(71)})), answer=is_none)
    yield Call("seen_or_add", {"text_or_batch": batch({71: value(71)}), "commit_s": 3600.0},
               states=("recent",), effect=adding(batch({71: value(71)})), answer=is_none)
    for states in (("buffered",), ("buffered", "merging"), ("merged", "buffered")):
        yield Call("seen_or_add", {"text_or_batch": ONE}, states=states,
                   effect=chain(committed, adding(ONE)), answer=is_none)
    yield Call("seen_or_add", {"text_or_batch": text(51), "key": "key51"}, on="keyed",
               effect=adding(keyed(51)), answer=is_none)
    yield Call("seen_or_add", {"text_or_batch": text(1), "key": "again"}, on="keyed",
               answer=a_match("key1", 0))


def _commits() -> Iterator[Call]:
    """What waits becomes part of the index."""
    for states in ((), ("buffered",), ("spilled",), ("deleting",), ("recent",), ("tuned",),
                   ("merging",), ("merged",), ("merged", "buffered"), ("merging", "buffered"),
                   ("merging", "recent"), ("merging", "spilled", "deleting")):
        yield Call("commit", states=states, effect=committed)
    yield Call("commit", on="keyed", states=("spilled", "deleting"), effect=committed)


def _compactions() -> Iterator[Call]:
    """Segments become fewer, or others."""
    for states in ((), ("buffered",), ("deleting",), ("merging",), ("merged",)):
        yield Call("compact", states=states, effect=committed, gate=True)
        yield Call("compact", {"full": True}, states=states, effect=committed)
        yield Call("compact", {"structures": OTHERS}, states=states, effect=committed)
    yield Call("compact", {"full": False}, effect=committed)
    for states in (("merging",), ("merged",), ("deleting",)):
        yield Call("compact", {"full": True, "structures": OTHERS}, states=states,
                   effect=committed)
    yield Call("compact", {"full": True, "progress": progress}, effect=committed)
    yield Call("compact", {"full": True}, on="keyed", states=("merging",), effect=committed)


def _ends() -> Iterator[Call]:
    """The handle goes."""
    for states in ((), ("buffered",), ("spilled",), ("recent",), ("merging",), ("merged",)):
        yield Call("close", states=states, effect=committed)
        yield Call("discard", states=states, effect=discarded)
        yield Call("__exit__", LEFT_CLEANLY, states=states, effect=committed, gate=True)
        yield Call("__exit__", LEFT_BY_ERROR, states=states, effect=discarded)


def _openings() -> Iterator[Call]:
    """An index is opened, made, or mended; there is no handle yet."""
    for mode in ("r", "w", "c"):
        yield Call("open", {"mode": mode}, mode="", answer=opened)
    for mode in ("c", "n"):
        yield Call("open", {"mode": mode, "options": PLAIN}, mode="", on="nothing",
                   effect=lambda model: Model((), ()), answer=opened)
    yield Call("open", {"mode": "w", "options": PLAIN}, mode="", answer=opened)
    yield Call("open", {"mode": "r", "options": KEYED}, on="keyed", mode="", answer=opened)
    yield Call("open", {"mode": "n", "overwrite": True, "options": IndexOptions(keys=True)},
               mode="", effect=lambda model: Model((), ()), answer=opened)
    yield Call("open", {"mode": "n", "overwrite": False}, on="nothing", mode="",
               effect=lambda model: Model((), ()), answer=opened)
    for refresh in (False, True):
        yield Call("open", {"mode": "r", "refresh": refresh}, mode="", answer=opened)
    for verify in VERIFY:
        yield Call("open", {"mode": "r", "verify": verify}, mode="", answer=opened)
    yield Call("open", {"mode": "w"}, on="abandoned", mode="", answer=opened)
    yield Call("open", {"mode": "w", "wait_s": 0.01}, mode="", answer=opened)
    for apply in (False, True):
        yield Call("repair", {"apply": apply}, on="wrecked", mode="", answer=mended)
        yield Call("repair", {"apply": apply, "progress": progress}, mode="", answer=mended)


MEMORY = np.array([value(1), value(1, 0), value(2), value(1)], np.uint64)


def _functions() -> Iterator[Call]:
    """What needs no index."""
    def pairs(found: Any, rows: Rows) -> str:
        given = list(zip(found.a.tolist(), found.b.tolist(), strict=True))
        return "" if given == [(0, 1), (0, 3), (1, 3)] else f"pairs {given}"

    def clusters(found: Any, rows: Rows) -> str:
        given = list(zip(found.id.tolist(), found.cluster.tolist(), strict=True))
        return "" if given[:3] == [(0, 0), (1, 0), (3, 0)] else f"clusters {given}"

    yield Call("find_all", {"fingerprints": MEMORY, "h": 3, "threads": 2}, mode="", answer=pairs)
    yield Call("find_all", {"fingerprints": MEMORY, "blocks": 5}, mode="", answer=pairs)
    yield Call("find_all", {"fingerprints": MEMORY, "similarity": RESEMBLANCE,
                            "measure": "jaccard", "recall": 0.85}, mode="")
    yield Call("calibrate", {"documents": TEXTS, "recipe": None, "others": [], "similarity": 0.7,
                             "recall": 0.9, "precision": 0.5, "sample": 8, "seed": 1, "threads": 1,
                             "progress": progress}, mode="")
    yield Call("explain_pair", {"a": "one two", "b": b"one three", "recipe": None, "h": 3,
                                "names": ("a", 7)}, mode="")
    for measure in ("cosine", "jaccard"):
        yield Call("explain_pair", {"a": "one two", "b": "one three", "similarity": RESEMBLANCE,
                                    "recipe": simindex.Recipe(weighting="binary"),
                                    "measure": measure}, mode="")
    for collapse in (False, True):
        yield Call("find_all", {"fingerprints": MEMORY, "collapse_equal": collapse}, mode="",
                   answer=any_answer if collapse else pairs)
    for mode in ("components", "star"):
        yield Call("find_clusters", {"fingerprints": MEMORY, "h": 3, "mode": mode, "threads": 2},
                   mode="", answer=clusters)
    for singletons in (False, True):
        yield Call("find_clusters", {"fingerprints": MEMORY, "singletons": singletons,
                                     "prefer": [0]}, mode="",
                   answer=clusters)
    yield Call("rotation_pairs", {"fingerprints": MEMORY, "h": 3, "rotations": 8, "window": 2,
                                  "comparisons": 16, "seed": 1}, mode="")
    yield Call("hamming", {"a": value(1), "b": value(1, 4, 5)}, mode="",
               answer=lambda found, _: "" if found == 2 else f"{found} bits")


CALLS: tuple[Call, ...] = tuple(
    call for part in (
        _questions, _questions_to_writers, _additions, _expirations, _ingests, _beginnings,
        _admissions,
        _commits, _compactions, _ends, _openings, _functions,
    ) for call in part()
)
"""The table."""


def share(part: int, parts: int) -> Tally:
    """Makes every call of the table, undisturbed; one interpreter's part of them."""
    ready()
    tally = Tally()
    with workplace() as place:
        specimens = place / "specimens"
        specimens.mkdir()
        built(specimens)
        for number, call in enumerate(parts_of(CALLS, part, parts)):
            wrong = _made_alone(call, specimens / call.on, place / str(number))
            if wrong:
                tally.fault("wrong", f"{call.name}: {wrong}")
            tally.done += 1
    return tally


def _made_alone(call: Call, specimen: Path, path: Path) -> str:
    stage = staged(specimen, path, call.on, call.mode, call.states)
    if call.gate:
        GATE.open(RUNS_S)
    model, wrong = undisturbed(call, stage)
    GATE.open()
    for other in stage.others:
        other.close()
    if stage.index is None:
        return wrong
    if call.method not in ENDING:
        if brute.held(stage.index) != model.durable:
            wrong = wrong or "other rows than those that are committed"
        if call.mode == "w":
            stage.index.commit()
            if brute.held(stage.index) != model.waiting:
                wrong = wrong or "other rows after a commit"
        stage.index.close()
    with simindex.open(path) as again:
        if call.method in ENDING and brute.held(again) != model.durable:
            wrong = wrong or "other rows in the index opened anew"
    return wrong
