"""Writers are killed at random moments while readers check every answer.

An index lives through some kills. Each time a new writer goes on where the last one was stopped:
it appends, replaces, deletes, ingests and compacts, with merges in threads of its own, and tells
the parent of every commit that returned. It ends by SIGKILL, a third of the time while it still
opens what the one before it left. Two readers run at the same time; they are stopped, woken and
killed, too. What a reader sees is compared with the story at the step that the snapshot names:
all rows, and answers of several methods; and the steps it sees must not go back.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from typing import Any

import numpy as np

import simindex
from reliability.examination import examine, open_descriptors
from reliability.report import Outcome, Pace
from reliability.story import OPTIONS, Story, difference, number, rows_in, wrong_answers
from reliability.trials import Child, Fault, Say, Tally, shared, workplace

LIFE = 40
"""Kills of one index; then it is examined by itself, and another begins."""

OPENING_S = 0.03
"""A writer that is to be killed while it opens lives at most so long."""

MOST_COMMITS = 8
"""Others live for as many commits, at most, and a moment more."""

MOMENT_S = 0.02

READERS = 2
PAUSE_S = 0.002
"""Of a reader between two looks, so that writers get on."""

REOPEN = 20
"""After so many looks a reader closes its handle and opens another."""

ANSWERS = 10
"""At a look: all rows twice, four queries, four of the nearest."""


def run(goal: int, seed: int, jobs: int) -> list[Outcome]:
    """So many kills of writers; kills of readers come on top."""
    began = time.monotonic()
    tally = shared("kills", jobs, goal=goal, seed=seed)
    if not tally.counts.get("answers of readers"):
        tally.fault("wrong", "no reader has checked anything")
    return [tally.outcome("kills", goal, time.monotonic() - began, seed)]


def share(part: int, parts: int, goal: int, seed: int) -> Tally:
    """One interpreter's part of the kills."""
    tally = Tally()
    due = goal // parts + (part < goal % parts)
    with workplace() as place:
        life = 0
        pace = Pace(f"kills, part {part + 1} of {parts}", due)
        while tally.done < due and not _faults(tally) >= 10:
            pace.at(tally.done)
            live(place / "index", [seed, part, life], min(LIFE, due - tally.done), tally)
            life += 1
    return tally


def _faults(tally: Tally) -> int:
    return tally.lost + tally.wrong + tally.signals + tally.hangs + tally.leaked


def live(path: Path, seed: list[int], kills: int, tally: Tally) -> None:
    """One index from its creation through some kills."""
    rng = np.random.default_rng(seed)
    story = Story(int(rng.integers(1 << 62)))
    note = f"life {seed}"
    shutil.rmtree(path, ignore_errors=True)
    simindex.open(path, "c", options=OPTIONS).close()
    acknowledged, readers = 0, [_reader(path, story, rng) for _ in range(READERS)]
    for kill in range(kills):
        def work(say: Say, after: int = acknowledged) -> None:
            write(path, story, after, say)

        writer = Child(work)
        readers = [_disturb(reader, path, story, rng, tally, note) for reader in readers]
        if kill % 3 == 0:
            time.sleep(OPENING_S * float(rng.random()))
        else:
            writer.hear(1 + int(rng.integers(MOST_COMMITS)))
            time.sleep(MOMENT_S * float(rng.random()))
        writer.kill()
        ended = writer.wait()
        if ended.code == 0:
            tally.fault("wrong", f"{note}: a writer that never ends has ended")
        tally.judge(ended, f"{note}, kill {kill}", killed=True)
        said = [value for value in ended.said if isinstance(value, dict) and "step" in value]
        opened = [value["opened"] for value in said if "opened" in value]
        tally.count("writers killed while opening", not opened)
        if opened and opened[0] - acknowledged not in (0, 1):
            kind = "lost" if opened[0] < acknowledged else "wrong"
            tally.fault(kind, f"{note}, kill {kill}: {opened[0]} after {acknowledged}")
        if said:
            tally.count("commits acknowledged", len(said) - len(opened))
            acknowledged = said[-1]["step"]
        tally.done += 1
    for reader in readers:
        reader.kill(SIGCONT)
        reader.kill()
        _end(reader, tally, note)
    last = Child(lambda say: say(examine(path, story, acknowledged)))
    tally.judge(last.wait(), f"{note}, at its end")


def write(path: Path, story: Story, acknowledged: int, say: Say) -> None:
    """Goes on where the index is, until it is killed."""
    with simindex.open(path, "w") as index:
        rows = rows_in(index)
        found = number(rows)
        say({"opened": found, "step": found})
        wrong = difference(rows, story.state(found))
        if wrong:
            raise Fault("wrong", f"opened at step {found} after {acknowledged}: {wrong}")
        while True:
            found += 1
            step = story.step(found)
            wrong = step.commit(index, story.state(found - 1))
            say({"step": found})
            wrong = wrong or difference(rows_in(index), story.state(found))
            if wrong:
                raise Fault("wrong", f"the writer itself, step {found}: {wrong}")
            step.follow_up(index)


def read(path: Path, story: Story, seed: int, say: Say) -> None:
    """Looks at every commit it meets, until it is killed."""
    rng = np.random.default_rng(seed)
    newest = 0
    while True:
        with simindex.open(path, refresh=False) as index:
            for _ in range(REOPEN):
                rows = rows_in(index)
                found = number(rows)
                if found < newest:
                    raise Fault("wrong", f"a reader sees step {found} after {newest}")
                newest = found
                state = story.state(found)
                wrong = difference(rows, state)
                wrong = wrong or wrong_answers(index, state, rng, int(rng.integers(1, 3)))
                wrong = wrong or difference(rows_in(index), state)  # it is pinned
                if wrong:
                    raise Fault("wrong", f"a reader at step {found}: {wrong}")
                time.sleep(PAUSE_S)
                index.refresh()
            say({"checked": REOPEN * ANSWERS})
        left = open_descriptors(path)
        if left:
            raise Fault("leaked", f"open after a reader's close: {left}")


def _reader(path: Path, story: Story, rng: np.random.Generator) -> Child:
    seed = int(rng.integers(1 << 62))
    return Child(lambda say: read(path, story, seed, say))


def _disturb(
    reader: Child, path: Path, story: Story, rng: np.random.Generator, tally: Tally, note: str
) -> Child:
    """Stops, wakes or replaces a reader, or leaves it alone."""
    chance = rng.random()
    if chance < 0.15:
        reader.kill(SIGSTOP)
        tally.count("readers stopped")
    elif chance < 0.5:
        reader.kill(SIGCONT)
    elif chance < 0.6:
        reader.kill()
        _end(reader, tally, note)
        return _reader(path, story, rng)
    return reader


def _end(reader: Child, tally: Tally, note: str) -> None:
    ended: Any = reader.wait()
    tally.judge(ended, f"{note}, a reader", killed=True)
    tally.count("readers killed")
    tally.count("answers of readers", sum(value.get("checked", 0) for value in ended.said))
