"""A real file system stops at a random moment, as if the power had gone, and is mounted again.

An ext4 in a file is mounted through a loop device in a name space of its own. A writer works on it
and tells of each commit that returned; then the file system is shut down by its own request for
that, FS_IOC_SHUTDOWN, mostly without writing out its journal. What was not synced is lost. It is
unmounted and mounted again, and what it then holds is compared with what was acknowledged.

Needs root, loop devices and mkfs.ext4; elsewhere nothing is done, and the report says so.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
import time
from functools import partial
from pathlib import Path
from signal import SIGBUS

import numpy as np

from reliability import namespaces
from reliability.examination import examine
from reliability.report import Outcome, Pace
from reliability.story import Story, number, opened, rows_in
from reliability.trials import Child, Fault, Say, Tally, forked, shared, workplace
from simindex.errors import CommitFailed, StorageFailed

FS_IOC_SHUTDOWN = 0x8004587D
LOG_FLUSHED, LOG_LOST = 1, 2
"""How the file system goes down: its journal written out first, or not."""

IMAGE_BYTES = 96 << 20
LIFE = 25
"""Shutdowns of one index; the next one begins with its creation."""

MOST_COMMITS = 6
MOMENT_S = 0.03


def run(goal: int, seed: int, jobs: int) -> list[Outcome]:
    """So many shutdowns."""
    began = time.monotonic()
    why = hindrance()
    if why:
        return [Outcome("shutdowns", 0, 0, 0.0, seed, skipped=f"{goal} shutdowns: {why}")]
    tally = shared("shutdowns", jobs, goal=goal, seed=seed)
    return [tally.outcome("shutdowns", goal, time.monotonic() - began, seed)]


def hindrance() -> str:
    """Why no file system can be mounted here, or ""."""
    if os.geteuid() != 0:
        return "not root"
    for tool in ("mkfs.ext4", "mount", "umount", "losetup"):
        if shutil.which(tool) is None:
            return f"no {tool}"
    with workplace() as place:
        ended = forked(partial(_try, place))
    return "" if ended.code == 0 else "nothing can be mounted"


def _try(place: Path, say: Say) -> None:
    with Mounted(place) as volume:
        (volume.path / "file").write_bytes(b"kept")


class Mounted:
    """An ext4 of one's own, which this process and its children see only."""

    def __init__(self, place: Path) -> None:
        self.image, self.path = place / "image", place / "volume"

    def __enter__(self) -> Mounted:
        namespaces.enter()
        self.path.mkdir()
        with self.image.open("wb") as image:
            image.truncate(IMAGE_BYTES)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(self.image)], check=True, capture_output=True)
        self.mount()
        return self

    def __exit__(self, *error: object) -> None:
        self.unmount()

    def mount(self) -> None:
        """Mounts it, which plays back its journal."""
        namespaces.mount("-o", "loop", str(self.image), str(self.path))

    def unmount(self) -> None:
        """Unmounts it; nothing of it may be open."""
        for _ in range(100):
            done = subprocess.run(["umount", str(self.path)], capture_output=True, check=False)
            if done.returncode == 0:
                return
            time.sleep(0.05)  # a killed process may still be ending
        raise Fault("leaked", f"{self.path} stays in use")

    def shut_down(self, how: int) -> None:
        """From now on nothing reaches the disk any more."""
        fd = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, FS_IOC_SHUTDOWN, struct.pack("I", how))
        finally:
            os.close(fd)


def share(part: int, parts: int, goal: int, seed: int) -> Tally:
    """One interpreter's part of the shutdowns."""
    tally = Tally()
    due = goal // parts + (part < goal % parts)
    rng = np.random.default_rng([seed, part])
    with workplace() as place, Mounted(place) as volume:
        pace = Pace(f"shutdowns, part {part + 1} of {parts}", due)
        while tally.done < due:
            pace.at(tally.done)
            life(volume, rng, min(LIFE, due - tally.done), tally)
    return tally


def life(volume: Mounted, rng: np.random.Generator, shutdowns: int, tally: Tally) -> None:
    """One index from its creation through some shutdowns."""
    path, story = volume.path / "index", Story(int(rng.integers(1 << 62)))
    shutil.rmtree(path, ignore_errors=True)
    os.sync()
    acknowledged = 0
    for crash in range(shutdowns):
        note = f"story {story.seed}, shutdown {crash}"
        writer = Child(partial(write, path, story))
        if crash or rng.random() < 0.5:  # else while it is created, or just after
            writer.hear(1 + int(rng.integers(MOST_COMMITS)))
        time.sleep(MOMENT_S * float(rng.random()))
        volume.shut_down(LOG_FLUSHED if rng.random() < 0.2 else LOG_LOST)
        time.sleep(MOMENT_S * float(rng.random()))  # the writer meets it
        writer.kill()
        ended = writer.wait()
        if ended.code == -SIGBUS:
            tally.count("writers that touched a map of the dead disk")
        else:
            tally.judge(ended, note, killed=True)
        for value in ended.said:
            if "error" in value:
                tally.count(value["error"])
            elif "step" in value:
                acknowledged = max(acknowledged, value["step"])
                tally.count("commits acknowledged")
        volume.unmount()
        volume.mount()
        ended = forked(partial(_examine, path, story, acknowledged))
        if tally.judge(ended, note):
            acknowledged = ended.said[0] + 1  # the examination goes on by a step
        tally.done += 1


def _examine(path: Path, story: Story, acknowledged: int, say: Say) -> None:
    say(examine(path, story, acknowledged))


def write(path: Path, story: Story, say: Say) -> None:
    """Goes on where the index is, until nothing can be written any more.

    Any other error is a fault: what a shutdown left must open, and take what the story adds.
    """
    try:
        with opened(path) as index:
            found = number(rows_in(index))
            say({"step": found})
            while True:
                found += 1
                step = story.step(found)
                step.commit(index)
                say({"step": found})
                step.follow_up(index)
    except (StorageFailed, CommitFailed) as error:
        say({"error": type(error).__name__})
        time.sleep(60)  # until it is killed
