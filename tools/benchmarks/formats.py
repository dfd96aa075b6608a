"""What people have, read into a committed index, beside what bounds it.

    html      pages of a folder, on one core and all   resiliparse's extraction alone, on one core
    wet       texts of an archive, .warc.wet.gz        the goal of 20,000 documents/s
    parquet   a column of texts                        word weights and fingerprints alone: each
                                                       text is read twice, as `Recipe` does it
                                                       and the second of these passes alone

`simindex build` runs in a process of its own, from its start to its end. In turn with it, it runs
on one document of the same format, which is the time of the start. A bound is timed in a process of
its own, without its start, of bytes and texts that are in memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zlib
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.building import remove
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, in_fresh_process, say
from benchmarks.texts import documents

PAGES = 6000
"""Of HTML at most, as many as rows: those of --data again and again, each under its own name."""

DISTINCT = 25_000
"""Texts of 300 words; more documents are these with a number each."""

LEAST_S = 0.001
"""Seconds without the start, at least: of a few documents they are less than the spread."""


def formats(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """One format after the other, or only one."""
    texts = _many(documents(options.data, min(options.rows, DISTINCT), options.seed).texts,
                  options.rows)
    makers: dict[str, tuple[Callable[[list[str], Path], Path], str]] = {
        "wet": (_archive, "warc.wet.gz"), "parquet": (_column, "parquet"),
    }
    measured: list[Measurement] = []
    chosen = [*makers, "html"] if options.format is None else [options.format]
    pages: list[Path] = []
    if options.data is not None and "html" in chosen:
        pages = sorted((options.data / "html").rglob("*.html"))
    if pages:
        number = min(PAGES, options.rows)
        folder = _folder(pages, directory / "pages", number)
        one = _folder(pages, directory / "page", 1)
        for name, cores in (("html, one core", 1), ("html, all cores", len(machine.CORES))):
            spent = in_turn(watch, folder, one, directory, cores=cores, bound="extract-pages")
            measured += _told(name, number, spent, "of extraction alone on one core")
    for name, (make, suffix) in makers.items():
        if name not in chosen:
            continue
        spent = in_turn(
            watch, make(texts, directory / f"texts.{suffix}"),
            make(texts[:1], directory / f"text.{suffix}"), directory, cores=len(machine.CORES),
            bound="fingerprint-column" if name == "parquet" else None,
        )
        measured += _told(name, len(texts), spent, "of word weights and fingerprints alone")
        if name == "parquet":
            spent["bound"] = spent["second"]
            measured += _shares(name, len(texts), spent, "of fingerprints alone")
    return measured


Seconds = dict[str, list[float]]


def in_turn(
    watch: Stopwatch, source: Path, one: Path, directory: Path, *, cores: int, bound: str | None
) -> Seconds:
    """Seconds of builds, of their starts, and of what bounds them if there is one, in turn.

    `one` is a source of one document.
    """
    spent: Seconds = {"build": [], "start": [], "bound": [], "second": []}
    for repetition in range(watch.repeat + 1):
        with machine.on_every_core():
            os.sched_setaffinity(0, sorted(machine.CORES)[-cores:])
            built = _build(source, directory / "formats.sim")
            start = _build(one, directory / "formats.sim")
            alone = {} if bound is None else in_fresh_process(bound, path=str(source))
        seconds = ", ".join(f"{name} alone {some:.2f} s" for name, some in alone.items())
        say(f"  {source.name}: {built:.2f} s, its start {start:.2f} s, {seconds or 'no bound'}")
        if repetition:
            spent["build"].append(built)
            spent["start"].append(start)
            for name, some in alone.items():
                spent[name].append(some)
    return spent


def _build(source: Path, index: Path) -> float:
    remove(index)
    # -P: the installed package, not the sources in the current folder.
    command = [sys.executable, "-P", "-m", "simindex", "build", str(index), str(source), "--quiet"]
    start = time.perf_counter()
    subprocess.run(command, check=True)
    seconds = time.perf_counter() - start
    remove(index)
    return seconds


def _told(name: str, n: int, spent: Seconds, of: str) -> Iterator[Measurement]:
    for engine, seconds in _runs(spent).items():
        rates = tuple(n / some for some in seconds)
        yield Measurement(f"{name} to an index", engine, n, rates, "documents/s")
    yield from _shares(name, n, spent, of)


def _shares(name: str, n: int, spent: Seconds, of: str) -> Iterator[Measurement]:
    """The bound, and the shares of it, where there is one."""
    if not spent["bound"]:
        return
    alone = tuple(n / seconds for seconds in spent["bound"])
    yield Measurement(f"{name}, {of}", "bound", n, alone, "documents/s")
    for engine, seconds in _runs(spent).items():
        pairs = zip(seconds, spent["bound"], strict=True)
        shares = tuple(bound / some for some, bound in pairs)
        yield Measurement(f"{name}, {of}", engine, n, shares, "times")


def _runs(spent: Seconds) -> Seconds:
    """Seconds of builds, whole and without their starts."""
    whole = spent["build"]
    return {
        "simindex build": whole,
        "simindex build, without its start": [
            max(built - start, LEAST_S) for built, start in zip(whole, spent["start"], strict=True)
        ],
    }


def _many(texts: list[str], rows: int) -> list[str]:
    """So many of them, in turn, each with its number."""
    return [f"{texts[row % len(texts)]} {row}" for row in range(rows)]


def _folder(pages: list[Path], folder: Path, number: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for place in range(number):
        page = pages[place % len(pages)]
        (folder / f"{place:06d}.html").write_bytes(page.read_bytes())
    return folder


def _archive(texts: list[str], path: Path) -> Path:
    """Records of converted pages, each a member of its own, as crawlers publish them."""
    with path.open("wb") as file:
        for number, text in enumerate(texts):
            block = text.encode()
            head = (
                "WARC/1.0\r\nWARC-Type: conversion\r\n"
                f"WARC-Target-URI: https://example.org/{number}\r\n"
                "WARC-Date: 2026-01-01T00:00:00Z\r\n"
                f"WARC-Record-ID: <urn:uuid:{number:032x}>\r\n"
                f"Content-Type: text/plain\r\nContent-Length: {len(block)}\r\n\r\n"
            )
            made = zlib.compressobj(6, zlib.DEFLATED, 31)
            file.write(made.compress(head.encode() + block + b"\r\n\r\n") + made.flush())
    return path


def _column(texts: list[str], path: Path) -> Path:
    import pyarrow as pa
    from pyarrow import parquet

    ids = [f"document-{number}" for number in range(len(texts))]
    parquet.write_table(pa.table({"id": ids, "text": texts}), path)
    return path


# -- what bounds them, in processes of their own ---------------------------------------------------


def extract_pages(path: str) -> dict[str, Any]:
    """Texts of all pages of a folder, by resiliparse alone."""
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding
    from resiliparse.parse.html import HTMLTree

    pages = [file.read_bytes() for file in sorted(Path(path).iterdir())]

    def extract() -> None:
        for data in pages:
            page = bytes_to_str(data, detect_encoding(data, from_html_meta=True) or "utf-8")
            extract_plain_text(HTMLTree.parse(page), main_content=True)

    return {"bound": _seconds(extract)}


def fingerprint_column(path: str) -> dict[str, Any]:
    """Word weights and fingerprints of all texts of a Parquet file, which are in memory; and
    fingerprints alone."""
    from pyarrow import parquet

    import simindex

    texts = parquet.read_table(path)["text"].to_pylist()
    recipe = simindex.Recipe(ngram=1, weighting="balanced-tfidf")
    both = _seconds(lambda: recipe.fit(texts).batch(texts))
    fitted = recipe.fit(texts)
    return {"bound": both, "second": _seconds(lambda: fitted.batch(texts))}


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
