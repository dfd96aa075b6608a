"""`--similarity` of the commands, and sketches from the shell to the index and back."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from math import cos, pi
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions

Run = Callable[..., Any]

ROWS = np.array([0, 0b1, 0b11, 0, 1 << 40, (1 << 40) - 1], np.uint64)
SKETCHES = np.array(
    [[0, 0], [0b111, 0], [(1 << 50) - 1, 0], [0, 0], [0, 1], [0, 3]], np.uint64
)
"""Rows 0, 1, 2, 3 and 4 are near each other; the sketch of row 2 is far from all others."""
SIZES = [64, 64, 64, 64, 64, 0]


@pytest.fixture
def sketched(tmp_path: Path) -> Path:
    options = IndexOptions(keys="str", sketch_bits=128)
    with simindex.open(tmp_path / "a.sim", "n", options=options) as index:
        index.append(Batch(ROWS, keys=list("abcdef"), sketch=SKETCHES, features=SIZES))
    return Path("a.sim")


def told(distance: int, bits: int = 128) -> float:
    return round(cos(pi * distance / bits), 4)


def test_pairs_have_the_similarity_of_their_sketches(run: Run, sketched: Path) -> None:
    done = run("pairs", sketched, "--similarity", "0.9")
    found = {
        frozenset(line.split("\t")[:2]): line.split("\t")[2:]
        for line in done.stdout.splitlines()
    }
    assert found == {
        frozenset("ab"): ["3", str(told(3))], frozenset("ad"): ["0", "1.0"],
        frozenset("ae"): ["1", str(told(1))], frozenset("bd"): ["3", str(told(3))],
        frozenset("be"): ["4", str(told(4))], frozenset("de"): ["1", str(told(1))],
    }
    assert "6 pairs of similarity 0.9 or more among 6 rows" in done.stderr
    assert "kept within 18 of 128 bits of sketch" in done.stderr
    collapsed = run("pairs", sketched, "--similarity", "0.9", "--collapse-equal", "--json")
    lines = [json.loads(line) for line in collapsed.stdout.splitlines()]
    assert len(lines) == 4
    assert all(one["similarity"] == told(one["distance"]) for one in lines)
    assert all(0 < one["similarity_error"] < 0.05 for one in lines)


def test_an_estimate_is_never_told_without_an_error(run: Run, tmp_path: Path) -> None:
    """That of equal bits is less than four decimals tell; only exact similarities have none."""
    sketches = np.zeros((3, 8), np.uint64)
    sketches[2] = 1
    with simindex.open(tmp_path / "a.sim", "n", options=IndexOptions(sketch_bits=512)) as index:
        index.append(Batch(ROWS[:1].repeat(3), keys=list("abc"), sketch=sketches))
    done = run("pairs", "a.sim", "--similarity", "0.99", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    errors = {one["distance"]: one["similarity_error"] for one in lines}
    assert errors == {0: 0.0001, 8: 0.0009}


def test_matches_have_it_in_lines_and_tables(run: Run, sketched: Path) -> None:
    run("export", sketched, "-o", "rows.jsonl")
    done = run("query", sketched, "rows.jsonl", "--similarity", "0.9")
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert [one for one in lines if one[0] == "c"] == [["c", "c", "0", "1.0"]]
    assert [one[1:] for one in lines if one[0] == "e"] == [
        ["e", "0", "1.0"], ["a", "1", str(told(1))], ["d", "1", str(told(1))],
        ["b", "4", str(told(4))],
    ]
    assert "of similarity 0.9 or more" in done.stderr
    table = run("query", sketched, "rows.jsonl", "--similarity", "0.9", "--output", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(table)))
    assert len(rows) == len(lines)
    assert {float(row["similarity"]) for row in rows} == {
        told(distance) for distance in (0, 1, 3, 4)
    }
    assert all(float(row["similarity_error"]) > 0 or row["distance"] == "0" for row in rows)
    unmatched = run("query", sketched, "rows.jsonl", "--similarity", "0.9", "--list", "unmatched")
    assert unmatched.stdout == ""


def test_a_resemblance_is_told_as_one(run: Run, sketched: Path) -> None:
    done = run("pairs", sketched, "--similarity", "0.8", "--measure", "jaccard", "--json")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == 6
    for one in found:
        cosine = cos(pi * one["distance"] / 128)
        assert one["similarity"] == round(cosine / (2 - cosine), 4)
    assert "that of sets of equal size at the resemblance 0.8" in done.stderr
    run("export", sketched, "-o", "rows.jsonl")
    done = run("query", sketched, "rows.jsonl", "--similarity", "0.8", "--measure", "jaccard")
    values = {line.split("\t")[3] for line in done.stdout.splitlines()}
    assert values == {"1.0", *(str(one["similarity"]) for one in found)}
    Path("a.jsonl").write_text('{"id": "a", "text": "one two three four five"}\n')
    run("build", "t.sim", "a.jsonl")
    done = run("pairs", "t.sim", "--similarity", "0.8", "--measure", "jaccard", code=2)
    assert "--measure jaccard compares sets of features" in done.stderr
    done = run("pairs", "t.sim", "--measure", "jaccard", code=2)
    assert "says what a similarity is, and none is given" in done.stderr


def test_a_similarity_excludes_a_distance_and_the_nearest(run: Run, sketched: Path) -> None:
    for command in (["query", sketched, "--text", "a"], ["pairs", sketched],
                    ["explain", sketched, "--text", "a"]):
        done = run(*command, "--similarity", "0.9", "-d", "3", code=2)
        assert "--similarity chooses the radius: leave out --distance" in done.stderr
    done = run("pairs", sketched, "--similarity", "0.3", code=2)
    assert "--similarity 0.3 is not valid: give a cosine from 0.5 to 1" in done.stderr
    done = run("query", sketched, "--text", "a", "--top", "1", "--similarity", "0.9", code=2)
    assert "leave out --similarity" in done.stderr
    done = run("query", sketched, "--fingerprint", "0" * 16, "--similarity", "0.9", code=2)
    assert "the queries have no sketches" in done.stderr
    assert "or give --distance in place of --similarity" in done.stderr


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_exported_sketches_come_back(run: Run, sketched: Path, suffix: str) -> None:
    run("export", sketched, "-o", f"rows.{suffix}")
    run("build", "b.sim", f"rows.{suffix}")
    assert run("export", "b.sim").stdout == run("export", sketched).stdout
    line = json.loads(run("export", "b.sim").stdout.splitlines()[0])
    assert line == {"key": "a", "fingerprint": "0" * 16, "sketch": "0" * 32, "size": 64}
    with simindex.open("b.sim") as index:
        assert index.options.sketch_bits == 128
        assert index.stats().sketch_bits == 128
        assert [batch.sizes.tolist() for batch in (index.get("b"), index.get("f"))] == [[64], [0]]
    assert "128 bits, which decide with --similarity" in run("stats", "b.sim").stdout
    # The same rows again: they replace themselves.
    run("build", "b.sim", f"rows.{suffix}", "--append")
    run("merge", sketched, "b.sim", "-o", "c.sim")
    assert run("export", "c.sim").stdout == run("export", sketched).stdout


def test_rows_of_other_sketches_are_bad_records(run: Run, sketched: Path) -> None:
    plain = '{"key": "x", "fingerprint": "0000000000000001"}\n'
    Path("plain.jsonl").write_text(plain)
    done = run("build", sketched, "plain.jsonl", "--append", code=4)
    assert "plain.jsonl:1: no sketch, and a sketch of 128 bits is needed" in done.stderr
    for sketch, wrong in (
        ('"' + "0" * 32 + '", "size": "3 kB"',
         "field 'size' is '3 kB', which is not a number of features"),
        ('"' + "0" * 32 + '", "size": -1', "field 'size' is -1"),
        ('"ab"', "'ab' is not a sketch"), ("7", "field 'sketch' is a value of type int"),
        ('"' + "0" * 16 + '"', "a sketch of 64 bits, and a sketch of 128 bits is needed"),
    ):
        Path("one.jsonl").write_text(plain.replace("}", f', "sketch": {sketch}}}'))
        assert wrong in run("build", sketched, "one.jsonl", "--append", code=4).stderr
    run("build", "plain.sim", "plain.jsonl")
    done = run("merge", sketched, "plain.sim", "-o", "c.sim", code=2)
    assert "a.sim has sketches of 128 bits, and plain.sim of 0" in done.stderr
    run("export", sketched, "-o", "rows.jsonl")
    done = run("build", "plain.sim", "rows.jsonl", "--append", code=4)
    assert "a sketch of 128 bits, and no sketch is needed" in done.stderr


def test_texts_get_sketches_by_an_option(run: Run, tmp_path: Path) -> None:
    text = "one two three four five six seven eight nine ten eleven twelve"
    Path("a.jsonl").write_text(json.dumps({"id": "a", "text": text}) + "\n")
    run("build", "t.sim", "a.jsonl", "--sketch-bits", "128")
    with simindex.open("t.sim") as index:
        assert index.recipe is not None
        assert index.recipe.sketch_bits == 128
    done = run("query", "t.sim", "--text", text, "--similarity", "0.9")
    assert done.stdout == "text:1\ta\t0\t1.0\n"
    made = json.loads(
        run("fingerprint", "a.jsonl", "--json", "--sketch-bits", "128").stdout
    )
    assert made == {
        "key": "a", **{name: value for name, value in json.loads(
            run("export", "t.sim").stdout
        ).items() if name != "key"}
    }
    done = run("build", "t.sim", "a.jsonl", "--append", "--sketch-bits", "64", code=2)
    assert "it has --sketch-bits 128" in done.stderr
    assert "--sketch-bits 65" in run(
        "build", "u.sim", "a.jsonl", "--sketch-bits", "65", code=2
    ).stderr
    told = run("explain", "t.sim", "--text", text, "--similarity", "0.9").stdout
    assert "documents within 14 bits" in told
    assert "of 128 bits of sketch" in told


def parts(path: Path) -> None:
    """A text of 600 words, the first half of it, and one of them again, as another document."""
    words = [f"w{number}" for number in range(600)]
    texts = {"whole": words, "half": words[:300], "again": words[::-1]}
    path.write_text("".join(
        json.dumps({"id": name, "text": " ".join(some)}) + "\n" for name, some in texts.items()
    ))


BINARY = ("--weighting", "binary", "--ngram", 1, "--sketch-bits", 1024)
ASKED = ("--similarity", "0.53", "--measure", "jaccard")


@pytest.mark.parametrize(
    "ways", [(), ("--buffer", 2), ("--keep", "longest"), ("--index", "kept.sim")]
)
def test_dedup_goes_by_the_sizes_of_sets(run: Run, tmp_path: Path, ways: Any) -> None:
    """Half of a set is estimated at 0.55 by the law for sets of equal size, and resembles it by
    0.5."""
    parts(tmp_path / "a.jsonl")
    run("dedup", "a.jsonl", *BINARY, *ASKED, *ways, "--audit", "r.jsonl")
    lost = [json.loads(line) for line in Path("r.jsonl").read_text().splitlines()]
    assert [{one["dropped"], one["lost_to"]} for one in lost] == [{"whole", "again"}]


@pytest.mark.parametrize("keep", [(), ("--keep", "longest")])
def test_dedup_goes_by_the_sizes_of_stored_sets(run: Run, tmp_path: Path, keep: Any) -> None:
    parts(tmp_path / "a.jsonl")
    for name, lines in zip("xyz", (tmp_path / "a.jsonl").read_text().splitlines(), strict=True):
        Path(f"{name}.jsonl").write_text(lines + "\n")
        run("dedup", f"{name}.jsonl", "--index", "kept.sim", *BINARY, *ASKED, *keep,
            "--audit", f"{name}.audit")
    assert [len(Path(f"{name}.audit").read_text().splitlines()) for name in "xyz"] == [0, 0, 1]


def test_commands_go_by_the_sizes_of_sets(run: Run, tmp_path: Path) -> None:
    """Through what is built, exported, merged and appended."""
    parts(tmp_path / "a.jsonl")
    run("build", "a.sim", "a.jsonl", *BINARY)
    run("export", "a.sim", "-o", "rows.jsonl")
    run("build", "b.sim", "rows.jsonl")
    Path("none.jsonl").write_text("".join(
        json.dumps({name: value for name, value in json.loads(line).items() if name != "size"})
        + "\n" for line in Path("rows.jsonl").read_text().splitlines()
    ))
    run("build", "none.sim", "none.jsonl")
    Path("more.jsonl").write_text('{"id": "other", "text": "something else that is short"}\n')
    run("build", "more.sim", "more.jsonl", *BINARY)
    run("merge", "a.sim", "more.sim", "-o", "c.sim")
    for path, found in (("a.sim", 1), ("b.sim", 1), ("c.sim", 1), ("none.sim", 3)):
        done = run("pairs", path, *ASKED, "--recall", "0.9999", "--json")
        assert len(done.stdout.splitlines()) == found, path
    done = run("query", "a.sim", "a.jsonl", *ASKED, "--recall", "0.9999", "--json")
    assert len(done.stdout.splitlines()) == 2 * 2 + 1
    done = run("clusters", "a.sim", *ASKED, "--recall", "0.9999", "--json")
    sizes = {one["key"]: one["size"] for one in map(json.loads, done.stdout.splitlines())}
    assert sizes == {"whole": 2, "again": 2, "half": 1}
