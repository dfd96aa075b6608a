"""`simindex pairs` and `simindex clusters`: every line, with ids or keys, and how they end."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest

import simindex

Run = Callable[..., Any]
Spawn = Callable[..., subprocess.Popen[bytes]]
Objects = Callable[[str], list[dict[str, Any]]]

ROWS = np.array([0, 0b1, 0b11, 0b111, 0, 1 << 40, 1 << 30], np.uint64)
"""A chain, two that are equal, and two that are two bits apart and within one of the first."""


@pytest.fixture
def numbered(tmp_path: Path) -> Path:
    with simindex.open(tmp_path / "ids.sim", "n") as index:
        index.append(ROWS[:4], ids=np.arange(4) + 10)
        index.commit()
        index.append(ROWS[4:], ids=np.arange(4, 7) + 10)
    return Path("ids.sim")


@pytest.fixture
def keyed(tmp_path: Path) -> Path:
    options = simindex.IndexOptions(keys="bytes")
    keys = [b"tab\there", b"\xff", *(b"k%d" % n for n in range(2, 7))]
    with simindex.open(tmp_path / "keys.sim", "n", options=options) as index:
        index.append(ROWS, keys=keys)
    return Path("keys.sim")


NAMES = ["tab\\there", "\\\\xff", *(f"k{n}" for n in range(2, 7))]


def near(h: int) -> list[tuple[int, int, int]]:
    found = oracle.matches(ROWS, ROWS, h)
    return sorted((a, b, d) for a, b, d in found[found[:, 0] < found[:, 1]].tolist())


@pytest.mark.parametrize("h", [0, 1, 2])
def test_pairs_are_a_line_each(run: Run, numbered: Path, h: int) -> None:
    result = run("pairs", numbered, "-d", h)
    lines = [tuple(map(int, line.split("\t"))) for line in result.stdout.splitlines()]
    assert lines == [(a + 10, b + 10, d) for a, b, d in near(h)]
    pairs = "1 pair" if h == 0 else f"{len(lines)} pairs"
    assert f"{pairs} within {h} bits among 7 rows" in result.stderr


def test_pairs_have_keys_where_the_index_has(run: Run, keyed: Path) -> None:
    result = run("pairs", keyed, "-d", 1, "-q")
    found = {
        (*sorted(map(NAMES.index, (a, b))), int(d))
        for a, b, d in (line.split("\t") for line in result.stdout.splitlines())
    }
    assert found == set(near(1))
    assert result.stderr == ""


def test_pairs_as_json(run: Run, numbered: Path, keyed: Path, objects: Objects) -> None:
    found = objects(run("pairs", numbered, "--json", "-d", 0).stdout)
    assert found == [{"a": 10, "b": 14, "distance": 0}]
    (record,) = objects(run("pairs", keyed, "--json", "-d", 0).stdout)
    assert {record["a_key"], record["b_key"]} == {"tab\there", "k4"}
    assert record["a"] < record["b"]


def test_equal_rows_are_told_once(run: Run, numbered: Path, objects: Objects) -> None:
    result = run("pairs", numbered, "-d", 1, "--collapse-equal")
    lines = [tuple(map(int, line.split("\t"))) for line in result.stdout.splitlines()]
    assert sorted(lines) == [
        (10, 11, 1), (10, 14, 0), (10, 15, 1), (10, 16, 1), (11, 12, 1), (12, 13, 1)
    ]  # fmt: skip
    told = objects(run("pairs", numbered, "-d", 1, "--collapse-equal", "--json").stdout)
    assert [(one["a"], one["b"], one["distance"]) for one in told] == lines


def test_clusters_are_a_line_for_each_document(
    run: Run, numbered: Path, objects: Objects
) -> None:
    result = run("clusters", numbered, "-d", 1, "--mode", "components")
    assert result.stdout == (
        "10\t10\t10\t7\t0\n11\t10\t10\t7\t1\n12\t10\t10\t7\t2\n13\t10\t10\t7\t3\n"
        "14\t10\t10\t7\t0\n15\t10\t10\t7\t1\n16\t10\t10\t7\t1\n"
    )
    said = "1 cluster of at most 7 documents within 1 bits; 0 of 7 documents have no near-duplicate"
    assert said in result.stderr
    stars = run("clusters", numbered, "-d", 1)
    assert run("clusters", numbered, "-d", 1, "--star").stdout == stars.stdout
    assert stars.stdout == (
        "10\t10\t10\t5\t0\n11\t10\t10\t5\t1\n14\t10\t10\t5\t0\n15\t10\t10\t5\t1\n16\t10\t10\t5\t1\n"
        "12\t12\t12\t2\t0\n13\t12\t12\t2\t1\n"
    )
    assert objects(run("clusters", numbered, "-d", 0, "--json").stdout)[1] == {
        "id": 14, "cluster": 10, "representative": 10, "distance": 0, "size": 2
    }


def test_singletons_can_be_left_out(run: Run, numbered: Path) -> None:
    result = run("clusters", numbered, "-d", 0, "--no-singletons")
    assert result.stdout == "10\t10\t10\t2\t0\n14\t10\t10\t2\t0\n"
    said = "1 cluster of at most 2 documents within 0 bits; 5 of 7 documents have no near-duplicate"
    assert said in result.stderr
    assert len(run("clusters", numbered, "-d", 0).stdout.splitlines()) == 7


def test_clusters_have_keys_where_the_index_has(run: Run, keyed: Path, objects: Objects) -> None:
    lines = [
        line.split("\t") for line in
        run("clusters", keyed, "-d", 0, "--no-singletons", "-q").stdout.splitlines()
    ]
    assert sorted(line[0] for line in lines) == sorted([NAMES[0], NAMES[4]])
    assert {line[1] for line in lines} == {line[2] for line in lines} == {lines[0][0]}
    told = objects(run("clusters", keyed, "-d", 0, "--json").stdout)
    assert {one["key"] for one in told} == {"tab\there", "\\xff", "k2", "k3", "k4", "k5", "k6"}
    by_id = {one["id"]: one["key"] for one in told}
    assert all(one["cluster_key"] == by_id[one["cluster"]] for one in told)
    assert all(one["representative_key"] == by_id[one["representative"]] for one in told)


@pytest.mark.parametrize("command", ["pairs", "clusters"])
def test_what_is_wrong_is_said(run: Run, numbered: Path, command: str) -> None:
    result = run(command, numbered, "--memory-limit", "1k", code=2)
    assert "--memory-limit 1,024 bytes is too little" in result.stderr
    assert "at least" in result.stderr
    assert "is not a size" in run(command, numbered, "--memory-limit", "much", code=2).stderr
    refused = run(command, numbered, "-d", 65, code=2).stderr
    assert "--distance 65 is not a valid distance" in refused
    run(command, "nothing.sim", code=3)
    run(command, numbered, "--memory-limit", "64M")


@pytest.fixture
def hot(tmp_path: Path) -> Path:
    """More pairs than anybody waits for."""
    with simindex.open(tmp_path / "hot.sim", "n") as index:
        index.append(np.zeros(200_000, np.uint64))
    return Path("hot.sim")


def test_ctrl_c_ends_pairs(spawn: Spawn, hot: Path) -> None:
    process = spawn("pairs", hot)
    assert process.stdout is not None
    assert process.stdout.readline() == b"0\t1\t0\n"
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 130
    assert complaint == b"simindex: interrupted\n"


def test_a_reader_of_pairs_may_go_away(spawn: Spawn, hot: Path) -> None:
    process = spawn("pairs", hot)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 141
    process.stderr.close()
    assert process.stdin is not None
    process.stdin.close()


@pytest.mark.parametrize("command", ["pairs", "clusters"])
def test_a_terminal_sees_how_far_it_is(
    on_terminal: Callable[..., tuple[int, bytes]], numbered: Path, command: str
) -> None:
    code, seen = on_terminal(command, numbered)
    assert code == 0
    assert b"7 of 7 rows" in seen
