"""`plan` and `tune`: what is predicted and measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]


def test_plan_needs_no_index(run: Run) -> None:
    result = run("plan", "--rows", "8e9", "-d", 3, "--memory", "64G", "-v")
    heading, *lines = result.stdout.splitlines()
    assert heading.split()[:4] == ["method", "recall", "T", "t"]
    assert "m=10M" in heading and "cold=10M" in heading
    assert sum(line.startswith("*") for line in lines) == 1
    assert any("bphs:G=5,g=2" in line and " no " in line for line in lines)
    assert "--measure" in result.stderr


def test_plan_tells_size_and_speed(run: Run) -> None:
    heading, *lines = run("plan", "--rows", "1e6").stdout.splitlines()
    for column in ("on disk", "memory", "fits", "queries/s", "1M from disk"):
        assert column in heading
    (scan,) = [line for line in lines if "every row" in line]
    assert scan.split()[:6] == ["every", "row", "1", "15.3M", "7.63M", "yes"]


def test_plan_names_the_ways_in_words(run: Run) -> None:
    """The engine's names, which --structures takes, come with --verbose; no way has two lines."""
    planned = run("plan", "--rows", "8e9", "--memory", "64GB")
    lines = planned.stdout.splitlines()
    ways = [line[2:].split("  ")[0] for line in lines]
    assert ways == [
        "searched", "sorted rows", "3 permuted tables", "4 permuted tables", "8 permuted tables",
        "10 permuted tables", "16 permuted tables", "28 permuted tables", "every row",
    ]
    assert not any(name in planned.stdout for name in ("psm", "bphs", "scan"))
    assert sum(line.startswith("*") for line in lines) == 1
    assert "--verbose shows the names for --structures" in planned.stderr
    assert "18.5 days" in lines[-1]


@pytest.mark.slow
def test_plan_prints_records(run: Run, objects: Any) -> None:
    *found, lists = objects(
        run("plan", "--rows", "60_000_000", "--recall", 0.95, "--bits", 128, "--json").stdout
    )
    assert found[0]["method"] == "psm" and found[0]["recall"] == 0.95
    for name in ("batch_queries_s", "cold_queries_s", "batch_methods"):
        assert set(found[0][name]) == {"10000", "100000", "1000000", "10000000"}
    assert sum(one["chosen"] for one in found) == 1
    assert found[-1]["memory_bytes"] == 60_000_000 * 16
    assert (lists["structure"], lists["slices"], lists["slice_bits"]) == ("issl", 8, 16)


def test_plan_prints_the_size_of_slice_lists(run: Run, objects: Any) -> None:
    """[ISSL] section 3: 4 (n s + 2^w s) bytes, and here 4 s for where the last lists end."""
    table = run("plan", "--rows", "1e6", "--bits", 1024, "-v").stdout.splitlines()
    size = 4 * (10**6 * 64 + 2**16 * 64) + 4 * 64
    assert table[-2].split()[:5] == ["issl:", "64", "slices", "of", "16"]
    assert f" = {size:,} bytes in 1 segment:" in table[-2]
    assert table[-1].split()[:3] == ["the", "10", "nearest:"]
    *_, lists = objects(run("plan", "--rows", "9e9", "--bits", 4096, "--json").stdout)
    assert lists["segments"] == 3
    # Of so many rows the lists are worth it, and columns of bits for many queries.
    assert 0 < lists["top_scan_queries_s"] < lists["top_scan_batch_queries_s"]
    assert lists["top_scan_queries_s"] < lists["top_queries_s"]
    assert lists["disk_bytes"] == 4 * 256 * (9 * 10**9 + 3 * (2**16 + 1))
    assert "issl" not in run("plan", "--rows", "1e6", "-v").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rows", "8e9", "--memory", "6G"], "needs the least, 64,000,000,000 bytes"),
        (["--rows", "many"], "is not a whole number"),
        (["--rows", "1.5"], "is not a whole number"),
        (["--rows", "inf"], "is not a whole number"),
        (["--rows", "0"], "--rows 0 is not valid: give"),
        (["--rows", "1e6", "--memory", "much"], "is not a size"),
        (["--rows", "1e6", "--recall", "0"], "--recall 0.0 is not a share"),
        (["--rows", "1e6", "-d", "65"], "--distance 65 is not"),
        ([], "--rows"),
    ],
)
def test_plan_refuses_what_cannot_be(run: Run, arguments: list[str], words: str) -> None:
    assert words in run("plan", *arguments, code=2).stderr


@pytest.mark.parametrize(
    ("size", "fits"), [("8000000", True), ("7999999", False), ("7.7M", True), ("7.9MB", False)]
)
def test_sizes_are_binary_unless_they_end_in_b(run: Run, size: str, fits: bool) -> None:
    """A million rows take 8 MB = 7.63 MiB to be scanned."""
    planned = run("plan", "--rows", "1e6", "--memory", size, "-v", code=0 if fits else 2)
    scan = [line.split() for line in planned.stdout.splitlines() if "scan" in line.split()]
    assert [line[-11:-9] for line in scan] == ([["7.63M", "yes"]] if fits else [])
    assert ("comparing every row needs the least, 8,000,000 bytes" in planned.stderr) is not fits


def test_plan_divides_rows_among_machines(run: Run) -> None:
    """Rows and bytes are of a machine; what is sent is said below."""
    planned = run("plan", "--rows", "8e9", "-d", 3, "--machines", 200, "--price", 0.8)
    heading, *lines = planned.stdout.splitlines()
    assert heading.split()[:4] == ["searched", "recall", "rows", "on"]
    (scan,) = [line for line in lines if "every row" in line]
    assert scan.split()[3:7] == ["40M", "610M", "305M", "yes"]
    assert sum(line.startswith("*") for line in lines) == 1
    assert "200 shards of 40M rows, 1 a machine" in planned.stderr
    assert "the build costs" in planned.stderr


def test_plan_prints_records_of_machines(run: Run, objects: Any) -> None:
    found = objects(
        run(
            "plan", "--rows", "1e9", "--machines", 6, "--replicas", 2, "--cores", 4, "--disk",
            "2GB", "--network", "100MB", "--batch", "1k", "--text", "1TB", "--json",
        ).stdout
    )
    assert {(one["machines"], one["shards"], one["batch"]) for one in found} == {(6, 3, 1000)}
    assert sum(one["chosen"] for one in found) == 1
    assert {one["sent_bytes"] for one in found} == {3 * 8000}


def test_options_of_machines_need_machines(run: Run) -> None:
    for option, value in (("--cores", 3), ("--text", "1TB"), ("--price", 1), ("--shards", 2)):
        wrong = run("plan", "--rows", "1e6", option, value, code=2)
        assert f"{option} needs --machines N" in wrong.stderr
