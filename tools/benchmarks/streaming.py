"""A long stream of JSON lines through `simindex dedup - --index --mark`: is its memory flat?

    this process   made-up documents of 300 words -> a pipe          as fast as they are taken
    simindex       the pipe -> marked lines -> /dev/null             its memory after each TENTH

A document is pieces of texts that are held, put together by chance, so that there are always new
ones and making them takes little time. A tenth of the documents are copies of earlier ones.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from benchmarks import machine
from benchmarks.building import remove
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say
from benchmarks.texts import WORDS, made

HELD, PIECE_WORDS = 20_000, 30
"""Texts that are held, and words of a piece of them."""

COPIES, COPIED = 0.1, 1000
"""Share of copies, and documents that copies are made of at a time."""

BLOCK = 256
"""Documents that are written at once."""

PARTS = 10


def stream(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Memory and speed of each tenth."""
    index, rows = directory / "stream.sim", options.rows
    remove(index)
    command = [sys.executable, "-P", "-m", "simindex", "dedup", "-", "--index", str(index),
               "--mark", "--quiet"]
    own: list[float] = []
    most = read = 0.0
    with machine.on_every_core():
        began = last = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        assert process.stdin is not None
        with process.stdin as pipe:
            for number, block in enumerate(blocks(rows, options.seed), 1):
                read += pipe.write(block)
                here = _anonymous_bytes(process.pid) / 2**20
                most = max(most, here)
                if number * BLOCK * PARTS // rows > len(own):
                    own.append(here)
                    now = time.perf_counter()
                    say(f"  {read / 1e9:.2f} GB, {here:.0f} MiB, {now - last:.1f} s")
                    last = now
        process.wait()
        seconds = time.perf_counter() - began
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    size = sum(file.stat().st_size for file in index.rglob("*") if file.is_file())
    remove(index)
    return [
        Measurement(
            "stream: memory after each tenth", "simindex dedup", rows, tuple(own), "MiB",
            notes=f"{read / 1e9:.1f} GB in {seconds:.0f} s; {most:.0f} MiB at most; "
            + " ".join(f"{one:.0f}" for one in own) + f"; index {size / 1e6:.0f} MB",
        )
    ]


def blocks(rows: int, seed: int) -> Iterator[bytes]:
    """Lines of so many documents, some at a time."""
    chance = random.Random(seed)
    held = [text.replace("\n", " ").split(" ") for text in made(HELD, seed)]
    pieces = [
        " ".join(words[start : start + PIECE_WORDS])
        for words in held for start in range(0, WORDS, PIECE_WORDS)
    ]
    copied: list[str] = []
    for first in range(0, rows, BLOCK):
        lines = []
        for number in range(first, min(rows, first + BLOCK)):
            if copied and chance.random() < COPIES:
                text = chance.choice(copied).lower()
            else:
                text = " ".join(chance.choices(pieces, k=WORDS // PIECE_WORDS))
                if len(copied) < COPIED:
                    copied.append(text)
                else:
                    copied[number % COPIED] = text
            name = f'"id": "document-{number}", "url": "pages/{number}"'
            lines.append(f'{{{name}, "text": "{text}"}}\n')
        yield "".join(lines).encode()


def _anonymous_bytes(pid: int) -> int:
    """Memory of a process that is no page of a file."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
    found = [line.split() for line in lines if line.startswith("RssAnon:")]
    return 1024 * int(found[0][1]) if found else 0
