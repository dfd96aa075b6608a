"""`--output` and `-o`: the same results in each format, and what a run that ends early leaves."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex

Run = Callable[..., Any]
Spawn = Callable[..., Any]

KEYS = [b"plain", b"com,ma", b'quo"te', b"line\nend", b"nul\0", b"\xff", b""]


@pytest.fixture
def indexes(tmp_path: Path) -> None:
    """Rows that are near each other, under hostile keys, under text keys and under ids alone."""
    rows = np.arange(len(KEYS), dtype=np.uint64)
    with simindex.open(
        tmp_path / "bytes.sim", "n", options=simindex.IndexOptions(keys="bytes")
    ) as index:
        index.append(rows, keys=KEYS)
    texts = [key.decode("utf-8", "replace") for key in KEYS]
    with simindex.open(
        tmp_path / "texts.sim", "n", options=simindex.IndexOptions(keys="str")
    ) as index:
        index.append(rows, keys=texts)
    with simindex.open(tmp_path / "ids.sim", "n") as index:
        index.append(rows, ids=[2**64 - 2, *range(1, len(KEYS))])


CALLS = [
    "query {} --fingerprint 0000000000000000 --fingerprint ffffffffffffffff",
    "query {} --fingerprint 0000000000000000 --list matched",
    "query {} --fingerprint 0000000000000000 --top 3",
    "pairs {} -d 2", "pairs {} -d 2 --collapse-equal", "clusters {}",
    "clusters {} --keep representative", "clusters {} --keep representative --list drop",
    "export {}",
]


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.split("\n")[:-1]]


def as_text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else "" if value is None else str(value)


@pytest.mark.usefixtures("indexes")
@pytest.mark.parametrize("name", ["bytes.sim", "texts.sim", "ids.sim"])
@pytest.mark.parametrize("call", CALLS)
def test_formats_have_the_same_rows(run: Run, tmp_path: Path, call: str, name: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    words = [*call.format(name).split(), "-q"]
    printed = run(*words, "--json").stdout
    rows = objects(printed)
    assert rows
    assert run(*words, "--output", "jsonl").stdout == printed

    table = run(*words, "--output", "csv").stdout
    header, *lines = csv.reader(io.StringIO(table, newline=""))
    assert header == list(rows[0])
    assert lines == [list(map(as_text, row.values())) for row in rows]

    piped = parquet.read_table(io.BytesIO(run(*words, "--output", "parquet").stdout_bytes))
    assert piped.column_names == list(rows[0])
    told = [
        {
            column: value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
            for column, value in row.items()
        }
        for row in piped.to_pylist()
    ]
    assert told == rows
    if name == "bytes.sim" and call.startswith("pairs"):
        assert set(piped["a_key"].to_pylist()) | set(piped["b_key"].to_pylist()) == set(KEYS)

    for suffix, wanted in ((".jsonl", printed), (".csv", table)):
        assert run(*words, "-o", f"found{suffix}").stdout == ""
        assert (tmp_path / f"found{suffix}").read_bytes() == wanted.encode()
    run(*words, "-o", "found.parquet")
    assert parquet.read_table(tmp_path / "found.parquet") == piped
    assert not list(tmp_path.glob(".simindex-*"))


@pytest.mark.usefixtures("indexes")
def test_output_counts_before_the_suffix_and_json(run: Run, tmp_path: Path) -> None:
    run("export", "ids.sim", "-o", "rows.csv", "--output", "jsonl")
    assert objects((tmp_path / "rows.csv").read_text())
    run("export", "ids.sim", "-o", "rows.csv", "--json")
    assert (tmp_path / "rows.csv").read_text().startswith("id,fingerprint\n")
    run("export", "ids.sim", "-o", "rows", "--json")
    assert objects((tmp_path / "rows").read_text())
    assert run("pairs", "ids.sim", "--json", "--output", "csv").stdout.startswith("a,b,distance\n")
    assert run("pairs", "ids.sim", "--output", "csv", "-o", "-").stdout.startswith("a,b,distance\n")


@pytest.mark.usefixtures("indexes")
@pytest.mark.parametrize("option", ["-o", "--out"])
def test_an_error_names_the_option_as_it_was_typed(run: Run, option: str) -> None:
    for name, said in (
        ("rows.txt", "rows.txt does not say the format"),
        ("no/rows.csv", "no/rows.csv cannot be written"),
        ("ids.sim/rows.csv", "ids.sim/rows.csv is the index ids.sim, or in it"),
    ):
        assert f"{option} {said}" in run("pairs", "ids.sim", option, name, code=2).stderr
    assert f"give {option} a name" in run("pairs", "ids.sim", option, "", code=2).stderr


@pytest.mark.usefixtures("indexes")
def test_no_match_is_a_header(run: Run) -> None:
    words = ("query", "ids.sim", "--fingerprint", "f" * 16, "--output", "csv")
    assert run(*words).stdout == "query,id,key,distance\n"


def test_names_that_are_not_utf_8_are_written(run: Run, tmp_path: Path) -> None:
    """A query is named by its path, which may have any bytes."""
    pytest.importorskip("pyarrow")
    text = "the quick brown fox jumps over the lazy dog and runs away into the wood"
    (tmp_path / "docs").mkdir()
    (tmp_path / os.fsdecode(b"docs/caf\xe9,.txt")).write_text(text)
    run("build", "i.sim", "docs", "-q")
    for form in ("csv", "jsonl", "parquet"):
        assert b"caf" in run("query", "i.sim", "docs", "--output", form, "-q").stdout_bytes


@pytest.mark.usefixtures("indexes")
@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("pairs ids.sim -d 65 -o {}", 2), ("pairs none.sim -o {}", 3),
        ("query ids.sim empty.hex -o {}", 1),
        ("query ids.sim bad.hex -o {}", 4), ("clusters ids.sim --keep longest -o {}", 2),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_run_that_fails_leaves_the_old_file(
    run: Run, tmp_path: Path, call: str, code: int, suffix: str
) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "empty.hex").touch()
    (tmp_path / "bad.hex").write_text("0000000000000000\n0000000000000001\nzz\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    run(*call.format(f"found.{suffix}").split(), code=code)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    (tmp_path / f"found.{suffix}").write_text("old")
    run(*call.format(f"found.{suffix}").split(), code=code)
    assert (tmp_path / f"found.{suffix}").read_text() == "old"


@pytest.mark.usefixtures("indexes")
def test_a_terminal_is_not_sent_parquet(spawn: Spawn) -> None:
    ours, theirs = pty.openpty()
    process = spawn("pairs", "ids.sim", "--output", "parquet", stdout=theirs)
    _, stderr = process.communicate(timeout=60)
    os.close(theirs)
    os.close(ours)
    assert process.returncode == 2
    assert b"a terminal cannot show parquet: name a file with -o FILE" in stderr


@pytest.fixture
def many(tmp_path: Path) -> str:
    """An index with two million pairs."""
    with simindex.open(tmp_path / "many.sim", "n") as index:
        index.append(np.repeat(np.arange(1, 3, dtype=np.uint64) << np.uint64(40), 1500))
    return "many.sim"


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_reader_that_goes_away_ends_the_command(spawn: Spawn, many: str, form: str) -> None:
    pytest.importorskip("pyarrow")
    with spawn("pairs", many, "-d", 0, "--output", form, "-q") as process:
        process.stdout.read(3)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 141


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_an_interrupt_leaves_nothing_that_looks_whole(
    spawn: Spawn, many: str, tmp_path: Path, form: str, number: signal.Signals
) -> None:
    pytest.importorskip("pyarrow")
    with spawn("pairs", many, "-d", 0, "-o", f"pairs.{form}", "-q") as process:
        while not list(tmp_path.glob(".simindex-*.part")):
            assert process.poll() is None
        process.send_signal(number)
        assert process.wait(timeout=60) == {signal.SIGINT: 130, signal.SIGTERM: 143}[number]
    assert [path.name for path in tmp_path.iterdir()] == [many]


def test_an_interrupted_stream_of_parquet_has_no_end(
    spawn: Spawn, many: str, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    words = ("pairs", many, "-d", 0, "--output", "parquet", "-q")
    with (
        (tmp_path / "pairs.parquet").open("wb") as file, spawn(*words, stdout=file) as process,
    ):
        while (tmp_path / "pairs.parquet").stat().st_size == 0:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    assert (tmp_path / "pairs.parquet").read_bytes()[4:].find(b"PAR1") == -1


@pytest.mark.usefixtures("indexes")
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_full_disk_is_named(run: Run, form: str) -> None:
    pytest.importorskip("pyarrow")
    result = run("pairs", "ids.sim", "--output", form, "-o", "/dev/full", code=3)
    assert "simindex: /dev/full: No space left on device" in result.stderr
