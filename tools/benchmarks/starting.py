"""How long an import and each command of the shell take on a small index: processes of their own.

Time by the clock, from the start of the process to its end; the notes have its processor time. The
commands do their work, on a thousand documents or --rows: with --rows 10 hardly any work is left.
Beside them stands the floor: Python with what every command that opens an index needs of others.
`tune` ends at a wrong distance, for it would measure for seconds, and `ray` at its help, for a
cluster takes seconds to start.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path

import click
import lmdb
import msgpack
import numpy

import simindex
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch
from simindex.cli import COMMANDS

MAIN = "from simindex.cli import main; main()"

FLOOR = "import os; os.environ['OPENBLAS_NUM_THREADS'] = '1'; import numpy, lmdb, msgpack, click"
SITE = sorted({str(Path(one.__file__ or "").parents[1]) for one in (numpy, lmdb, msgpack, click)})

PROGRAMS = {
    "python": ["-c", "pass"],
    "numpy": ["-c", "import numpy"],
    "numpy, lmdb, msgpack, click": ["-c", FLOOR],
    "the same with -I -S": ["-I", "-S", "-c", f"import sys; sys.path += {SITE}; {FLOOR}"],
    "simindex": ["-c", "import simindex"],
    "simindex, an index opened": ["-c", "import simindex; simindex.open('i.sim').close()"],
}
"""Engine -> a program that is measured beside the commands. The floor has one thread of OpenBLAS,
as the shell has."""

OPTIONS = (["--help"], ["--version"], ["query", "--help"])

CALLS: dict[str, list[str]] = {
    "backup": ["i.sim", "new.sim"],
    "build": ["new.sim", "texts.jsonl"],
    "calibrate": ["i.sim", "texts.jsonl"],
    "check": ["i.sim"],
    "clusters": ["i.sim"],
    "compact": ["i.sim"],
    "completion": ["bash"],
    "dedup": ["texts.jsonl"],
    "delete": ["i.sim", "--key", "nobody"],
    "demo": ["--path", "modules"],
    "diff": ["--text", "one two three", "one two four"],
    "expire": ["timed.sim", "--older-than", "30d"],
    "explain": ["i.sim", "--text", "one two three"],
    "export": ["i.sim"],
    "fingerprint": ["texts.jsonl"],
    "gate": ["--against", "i.sim", "texts.jsonl"],
    "merge": ["i.sim", "j.sim", "-o", "new.sim"],
    "pairs": ["i.sim"],
    "plan": ["--rows", "1M"],
    "query": ["i.sim", "--text", "one two three"],
    "ray": ["--help"],
    "repair": ["i.sim"],
    "report": ["i.sim", "-o", "report.html"],
    "stats": ["i.sim"],
    "tune": ["i.sim", "-d", "65"],
}
"""Command -> arguments, in the folder that `prepare` fills."""

ENDS = {"calibrate": 1, "delete": 1, "gate": 1, "tune": 2}
"""Exit codes that are not 0."""


def prepare(place: Path, documents: int) -> None:
    """What the calls read: three indexes, documents, and a folder of modules."""
    texts = {f"{n}.txt": f"the quick brown fox {n} jumps over {n * n} lazy dogs" for n in
             range(documents)}
    (place / "texts.jsonl").write_text(
        "".join(json.dumps({"id": key, "text": text}) + "\n" for key, text in texts.items()),
        encoding="utf-8",
    )
    recipe = simindex.Recipe()
    for name in ("i.sim", "j.sim", "timed.sim"):
        options = simindex.IndexOptions(keys=True, recipe=recipe, times=name == "timed.sim")
        with simindex.open(place / name, "n", options=options) as index:
            index.append(recipe.batch(list(texts.values()), keys=list(texts)))
    (place / "modules").mkdir()
    shutil.copy(Path(os.__file__).with_name("textwrap.py"), place / "modules")


def start(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Milliseconds, one program after the other in every round."""
    assert set(CALLS) == set(COMMANDS), "a command has no call in CALLS"
    place = directory / "start"
    place.mkdir()
    prepare(place, options.rows)
    commands = {" ".join(given): given for given in OPTIONS}
    commands |= {name: [name, *given] for name, given in CALLS.items()}
    spent: dict[str, list[tuple[float, float]]] = {}
    warming = watch.repeat > 1  # by a first round, which compiles what is imported
    for round_ in range(watch.repeat + warming):
        for engine, program in PROGRAMS.items():
            spent.setdefault(engine, []).append(once(program, place, 0))
        for name, given in commands.items():
            spent.setdefault(name, []).append(once(
                ["-c", MAIN, *given], place, ENDS.get(name, 0)
            ))
            shutil.rmtree(place / "new.sim", ignore_errors=True)
        if warming and round_ == 0:
            spent.clear()
    shutil.rmtree(place)
    return [
        measured("import", engine, options.rows, spent[engine]) for engine in PROGRAMS
    ] + [measured(name, "simindex", options.rows, spent[name]) for name in commands]


def once(program: list[str], place: Path, ends: int) -> tuple[float, float]:
    """Milliseconds of processor time and of wall time that a program takes."""
    environment = {**os.environ}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else modules are compiled again each time
    began = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, *program], cwd=place, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(child.pid, 0)
    wall = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != ends:
        raise SystemExit(f"{program} ended with {child.returncode} instead of {ends}")
    return 1e3 * (used.ru_utime + used.ru_stime), 1e3 * wall


def measured(
    workload: str, engine: str, documents: int, spent: list[tuple[float, float]]
) -> Measurement:
    """What one program took."""
    cpu = statistics.median(used for used, _ in spent)
    return Measurement(
        f"start, {workload}", engine, documents, tuple(wall for _, wall in spent), "ms",
        notes=f"{cpu:.0f} ms of processor time",
    )
