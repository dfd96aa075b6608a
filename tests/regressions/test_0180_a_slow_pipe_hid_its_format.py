"""A pipe whose first bytes came one after the other was read in another format than it had: only
the bytes of the first write were looked at."""

from __future__ import annotations

import array
import bz2
import fcntl
import gzip
import io
import json
import os
import sys
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from simindex.inputs.document import BadRecord, Intake
from simindex.inputs.reading import read

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

TEXTS = ["one text", "another text"]


def arrow(texts: list[str]) -> bytes:
    rows, into = pa.table({"text": texts}), io.BytesIO()
    with pa.ipc.new_stream(into, rows.schema) as stream:
        stream.write_table(rows)
    return into.getvalue()


def parquet(texts: list[str]) -> bytes:
    from pyarrow.parquet import write_table

    into = io.BytesIO()
    write_table(pa.table({"text": texts}), into)
    return into.getvalue()



def html(texts: list[str]) -> bytes:
    return f"<html><body><p>{'. '.join(texts)}".encode()


def gzipped(texts: list[str]) -> bytes:
    return gzip.compress(parquet(texts))


def bzipped(texts: list[str]) -> bytes:
    return bz2.compress(arrow(texts))


KINDS = pytest.mark.parametrize("made", [arrow, parquet, gzipped, bzipped, html])


def taken(path: str) -> tuple[list[str], list[str]]:
    bad: list[BadRecord] = []
    intake = Intake(max_errors=None, report=bad.append)
    return [one.text for one in read([path], None, intake)], list(map(str, bad))


class OneByOne(io.RawIOBase):
    """A pipe that gives each byte by itself."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        some = self._data[self._at : self._at + 1]
        buffer[: len(some)] = some
        self._at += len(some)
        return len(some)


@KINDS
def test_standard_input_that_comes_slowly_is_recognised(
    made: Callable[[list[str]], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SimpleNamespace(buffer=io.BufferedReader(OneByOne(made(TEXTS))))
    monkeypatch.setattr(sys, "stdin", slow)
    assert taken("-") == ([". ".join(TEXTS)] if made is html else TEXTS, [])


def feed(path: Path, data: bytes, first: int) -> None:
    """Writes some bytes first, and the others once they have been read."""
    file = os.open(path, os.O_WRONLY)
    os.write(file, data[:first])
    waiting = array.array("i", [first])
    while waiting[0]:
        fcntl.ioctl(file, termios.FIONREAD, waiting)
        time.sleep(0.001)
    os.write(file, data[first:])
    os.close(file)


@KINDS
def test_a_named_pipe_that_comes_slowly_is_recognised(
    made: Callable[[list[str]], bytes], tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=feed, args=(pipe, made(TEXTS), 3), daemon=True)
    writer.start()
    assert taken(str(pipe)) == ([". ".join(TEXTS)] if made is html else TEXTS, [])
    writer.join()


def test_lines_are_not_waited_for(tmp_path: Path) -> None:
    """A document comes before the next one is written."""
    pipe = tmp_path / "lines.jsonl"
    os.mkfifo(pipe)
    first, second = (json.dumps({"text": text}).encode() + b"\n" for text in TEXTS)
    taken_first = threading.Event()

    def write() -> None:
        file = os.open(pipe, os.O_WRONLY)
        os.write(file, first)
        assert taken_first.wait(30)
        os.write(file, second)
        os.close(file)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    documents = read([str(pipe)])
    assert next(documents).text == TEXTS[0]
    taken_first.set()
    assert [one.text for one in documents] == TEXTS[1:]
    writer.join()
