"""One writer, one compactor and some readers, killed and stopped at random; see `actors`.

The trial ends with the index opened, compared, checked and compacted once more. It passes when
enough answers were judged and enough processes killed, no answer was another than the oracle's, no
acknowledged commit is gone, no process ended by itself or stood still, and memory, descriptors,
maps, disk and catalog are in the last quarter what they were in the second.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import simindex
from reliability import gauges
from reliability.actors import STRUCTURES, Actor, Writer, options
from reliability.journal import Journal
from reliability.oracle import World
from reliability.report import Outcome
from reliability.trials import searched

HANG_S = 90.0
"""A process that is not stopped uses the processor, however busy that is, more often than that."""

BUSY_S = 60.0
"""And it gets on with its work after so much processor time at most."""

FILLING = 1
"""Line of the gauges of what is done before and after the processes run."""

PLATEAU_S = 300.0
"""Shorter trials cannot tell growth from a beginning."""

BOUNDED = 16
"""Rows of the table of what must not grow."""


@dataclass(frozen=True)
class Plan:
    """What a soak does."""

    seconds: float
    seed: int
    readers: int = 4
    answers: int = 1_000_000
    kills: int = 200
    documents: int = 1500
    window: int = 48
    rate: float = 4.0
    """Operations a second."""
    patience_s: float = 0.0
    """So much longer at most, on a busy machine, until the goals are reached."""


@dataclass(slots=True)
class Process:
    """A running actor."""

    role: str
    place: int
    line: int
    popen: subprocess.Popen[bytes]
    stopped_until: float = 0.0
    killed: bool = False
    beat: int = 0
    beat_used: float = 0.0
    """Processor time when it last got on."""
    used: float = 0.0
    used_at: float = 0.0
    """When it was last seen to have used the processor."""

    def hangs(self, beat: int, now: float) -> bool:
        """Whether it waits for ever, or works without getting on."""
        used = gauges.processor_s(self.popen.pid)
        if used != self.used:
            self.used, self.used_at = used, now
        if beat != self.beat or self.stopped_until:
            self.beat, self.beat_used, self.used_at = beat, used, now
        return now - self.used_at > HANG_S or used - self.beat_used > BUSY_S


class Soak:
    """The processes of one trial, in a folder that is empty at first."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.folder, self.path = plan, folder, folder / "pages.sim"
        settings = {"documents": plan.documents, "window": plan.window, "rate": plan.rate}
        (folder / "settings.json").write_text(json.dumps(settings))
        self.gauges = gauges.Gauges(folder / "gauges", create=True)
        self.world = World(plan.seed, plan.documents, plan.window)
        self.plateau = gauges.Plateau()
        self.journal = Journal(folder / "journal")
        self.rng = np.random.default_rng([plan.seed, 5])
        self.line = FILLING
        self.kills = self.stops = self.signals = self.hangs = 0
        self.processes: list[Process] = []

    def run(self) -> list[Outcome]:
        """The whole trial."""
        simindex.open(self.path, "n", options=options(self.world)).close()
        self.fill()
        self.processes = [self.start("writer", 0), self.start("compactor", 0)]
        self.processes += [self.start("reader", place) for place in range(self.plan.readers)]
        try:
            began = time.monotonic()
            self.supervise(began)
            seconds = time.monotonic() - began
            self.end()
        finally:
            for process in self.processes:
                process.popen.kill()
                process.popen.wait()
        grown = self.judge_end()
        wrong, lost = self.gauges.total("wrong"), self.gauges.total("lost")
        plan, rows = self.plan, self.plateau.rows()
        long = plan.seconds >= PLATEAU_S
        growing = [name for name, *_, held in rows if not held] if long else []
        return [
            Outcome("soak: answers", plan.answers, self.gauges.total("answers"), seconds, plan.seed,
                    lost=lost, wrong=wrong),
            Outcome("soak: kills", plan.kills, self.kills, seconds, plan.seed,
                    signals=self.signals, hangs=self.hangs),
            Outcome("soak: what stays bounded", BOUNDED if long else 0, len(rows) if long else 0,
                    seconds, plan.seed, leaked=len(growing) + grown,
                    skipped="" if long else f"plateaus, in less than {PLATEAU_S:.0f} s"),
        ]

    def fill(self) -> None:
        """Does as many operations as the index needs to be as large as it stays."""
        writer = Writer(self.folder, self.plan.seed, FILLING)
        writer.rate = 1e9
        index = writer.opened_at_end()
        with index:
            writer.session(index, self.plan.window + 2)

    def start(self, role: str, place: int) -> Process:
        """Another process of a role."""
        self.line += 1
        command = [sys.executable, "-m", "reliability.actors", role, str(self.folder),
                   str(self.plan.seed), str(self.line)]
        # In the folder, and not where the sources without built kernels may be found.
        environment = {**os.environ, "PYTHONPATH": searched()}
        popen = subprocess.Popen(command, env=environment, cwd=self.folder)
        return Process(role, place, self.line, popen, used_at=time.monotonic())

    def supervise(self, began: float) -> None:
        """Kills, stops, continues, replaces and measures until the time is over."""
        plan = self.plan
        between = plan.seconds / (1.3 * plan.kills)
        next_kill = began + between
        next_stop = began + 2 * between
        next_sample = began
        while (now := time.monotonic()) < began + plan.seconds or (
            now < began + plan.seconds + plan.patience_s and not self.reached()
        ):
            for place, process in enumerate(self.processes):
                self.look_at(process, now)
                if process.popen.poll() is not None:
                    self.processes[place] = self.start(process.role, process.place)
            if now >= next_kill:
                next_kill += between * float(self.rng.uniform(0.5, 1.5))
                self.kill()
            if now >= next_stop:
                next_stop += 2 * between * float(self.rng.uniform(0.5, 1.5))
                self.stop(now)
            if now >= next_sample:
                next_sample = now + min(1.0, plan.seconds / 40)
                self.sample((now - began) / plan.seconds)
            time.sleep(0.01)

    def reached(self) -> bool:
        """Whether enough was answered and killed."""
        return (
            self.kills >= self.plan.kills and self.gauges.total("answers") >= self.plan.answers
        )

    def look_at(self, process: Process, now: float) -> None:
        """Continues one that was stopped long enough; notes one that ended or stands still."""
        if process.stopped_until and now >= process.stopped_until:
            process.stopped_until, process.used_at = 0.0, now
            process.popen.send_signal(signal.SIGCONT)
        code = process.popen.poll()
        if code is not None and not process.killed:
            self.signals += 1
            self.note(f"{process.role} (line {process.line}) ended by itself: {code}")
        if code is None:
            self.judge_still(process, now)

    def judge_still(self, process: Process, now: float) -> None:
        """Counts and ends a process that hangs."""
        if process.hangs(self.gauges.get(process.line, "beat"), now):
            self.hangs += 1
            self.note(f"{process.role} (line {process.line}) stands still")
            process.killed = True
            process.popen.kill()

    def note(self, text: str) -> None:
        """A line of the folder's log."""
        with (self.folder / "errors.txt").open("a") as file:
            file.write(text + "\n")

    def kill(self) -> None:
        """Any process, also one that is stopped; but the first reader, whose memory is watched."""
        ready = [p for p in self.processes if self.gauges.get(p.line, "ready")]
        ready = [p for p in ready if (p.role, p.place) != ("reader", 0) or self.plan.readers == 1]
        if ready:
            # The writer and the compactor as often as all readers together.
            odds = np.array([1.0 if p.role != "reader" else 2 / self.plan.readers for p in ready])
            process = ready[int(self.rng.choice(len(ready), p=odds / odds.sum()))]
            if process.role == "writer" and self.rng.random() < 0.7:
                self.await_intent()
            if process.popen.poll() is None:
                process.killed = True
                process.popen.kill()
                process.popen.wait()
                self.kills += 1

    def await_intent(self) -> None:
        """Waits, but not for long, until the writer is within a commit."""
        deadline = time.monotonic() + 1
        self.journal.read()
        while self.journal.intent is None and time.monotonic() < deadline:
            time.sleep(0.0005)
            self.journal.read()
        if self.journal.intent is not None:
            time.sleep(float(self.rng.uniform(0, 0.01)))

    def stop(self, now: float) -> None:
        """Any process, for some seconds; a reader now and then for long."""
        process = self.processes[int(self.rng.integers(len(self.processes)))]
        if process.popen.poll() is None and not process.stopped_until:
            longest = 20.0 if process.role == "reader" else 4.0
            pause = min(float(self.rng.uniform(0.1, longest)), self.plan.seconds / 8)
            process.stopped_until = now + pause
            process.popen.send_signal(signal.SIGSTOP)
            self.stops += 1

    def sample(self, share: float) -> None:
        """Memory, descriptors and maps of all; bytes of the index, and of what is unlinked."""
        pids = []
        for process in self.processes:
            pids.append(process.popen.pid)
            found = gauges.of_process(process.popen.pid)
            steady = (process.role, process.place) == ("reader", 0)
            self.plateau.add(share, "steady reader" if steady else process.role, found)
        whole = gauges.of_index(self.path)
        whole["unlinked"] = gauges.unlinked(pids, self.path)
        self.plateau.add(share, "index", whole)

    def end(self) -> None:
        """Tells all to end, and waits; who does not is counted as hanging."""
        for process in self.processes:
            if process.stopped_until:
                process.popen.send_signal(signal.SIGCONT)
                process.stopped_until = 0.0
        self.gauges.stop()
        for process in self.processes:
            process.used_at = time.monotonic()
        while any(process.popen.poll() is None for process in self.processes):
            for process in self.processes:
                if process.popen.poll() is None:
                    self.judge_still(process, time.monotonic())
            time.sleep(0.05)
        for process in self.processes:
            code = process.popen.returncode
            if code and not process.killed:
                self.signals += 1
                self.note(f"{process.role} (line {process.line}) ended with {code}")

    def judge_end(self) -> int:
        """Opens the index once more; returns how many files are too many."""
        judge = Actor(self.folder, self.plan.seed, FILLING)
        index = judge.opened_at_end()
        with index:
            state = self.world.state(judge.journal.last)
            for full in (False, True):
                judge.judge_whole(index, state, "rows at the end")
                if findings := index.check():
                    judge.wrong("check at the end", findings=findings)
                index.compact(full=full)
            index.compact(structures=STRUCTURES)
            segments = index.stats().segments
        found = [f for f in (self.path / "segments").iterdir() if f.suffix != ".dead"]
        return max(0, len(found) - segments * len(STRUCTURES))

    def summary(self) -> str:
        """What else was counted, for people."""
        names = ("brute", "subset", "batches", "pinned", "operations", "compactions", "checks",
                 "settled", "voided")
        counts = ", ".join(f"{name} {self.gauges.total(name):,}" for name in names)
        return f"processes {self.line:,}, stops {self.stops:,}, {counts}"
