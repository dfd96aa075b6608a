"""Which document is kept instead of a dropped one, and how near it is."""

from __future__ import annotations

import csv
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

ROWS = np.array([0, 0b1, 0b11, 0, 1 << 40], np.uint64)
SKETCHES = np.array([[0, 0], [0b111, 0], [(1 << 50) - 1, 0], [0, 0], [0, 1]], np.uint64)


@pytest.fixture
def sketched(tmp_path: Path) -> Path:
    options = IndexOptions(keys="str", sketch_bits=128)
    with simindex.open(tmp_path / "a.sim", "n", options=options) as index:
        index.append(Batch(ROWS, keys=list("abcde"), sketch=SKETCHES))
    return Path("a.sim")


def test_every_dropped_document_has_one(run: Run, sketched: Path) -> None:
    run(
        "clusters", sketched, "--similarity", "0.9", "--keep", "representative",
        "--certificates", "why.jsonl",
    )
    told = [json.loads(line) for line in Path("why.jsonl").read_text().splitlines()]
    assert {one["dropped"] for one in told} | {told[0]["kept"]} == set("abde")  # c is far away
    assert len(told) == 3
    for one in told:
        assert one["similarity"] == round(cos(pi * one["distance"] / 128), 4) >= 0.9
        assert 0 < one["similarity_error"] < 0.05
    run("clusters", sketched, "-d", 2, "--keep", "representative", "--certificates", "why.csv")
    rows = list(csv.DictReader(Path("why.csv").read_text().splitlines()))
    assert {row["dropped"] for row in rows} | {rows[0]["kept"]} == set("abcde")
    assert list(rows[0]) == ["dropped", "kept", "distance"]  # nobody says of what the bits are
    assert all(int(row["distance"]) <= 2 for row in rows)


def test_a_distance_of_texts_tells_a_similarity(run: Run) -> None:
    texts = [" ".join(f"word{place}" for place in range(40)), ""]
    texts[1] = texts[0].replace("word7", "another")
    lines = [json.dumps({"id": str(number), "text": text}) for number, text in enumerate(texts)]
    Path("in.jsonl").write_text("\n".join(lines) + "\n")
    run("build", "t.sim", "in.jsonl", "--weighting", "sublinear")
    run(
        "clusters", "t.sim", "-d", 20, "--keep", "representative", "--certificates", "why.jsonl"
    )
    (told,) = [json.loads(line) for line in Path("why.jsonl").read_text().splitlines()]
    assert list(told) == ["dropped", "kept", "distance", "similarity", "similarity_error"]
    assert 0 < told["distance"] <= 20 and told["similarity_error"] > 0
    assert told["similarity"] == round(cos(pi * told["distance"] / 64), 4)


def test_they_go_with_keep_and_with_stars(run: Run, sketched: Path) -> None:
    said = run("clusters", sketched, "--certificates", "x.jsonl", code=2).stderr
    assert "--certificates needs --keep" in said
    said = run(
        "clusters", sketched, "--certificates", "x.jsonl", "--keep", "representative",
        "--mode", "components", code=2,
    ).stderr
    assert "--certificates needs --mode star" in said


WORDS = [f"word{number}" for number in range(400)]


def chained(rng: np.random.Generator, families: int = 12, length: int = 6) -> list[str]:
    """Texts that are edited again and again: neighbours are near, the ends are not."""
    texts = []
    for _ in range(families):
        words = rng.choice(WORDS, 100)
        for _ in range(length):
            texts.append(" ".join(words))
            words = words.copy()
            words[rng.integers(0, 100, 5)] = rng.choice(WORDS, 5)
    return texts


@pytest.mark.slow
@pytest.mark.parametrize("keep", ["first", "longest", "none"])
def test_dedup_drops_what_is_similar_to_a_kept_document(
    run: Run, write_jsonl: Any, rng: np.random.Generator, keep: str
) -> None:
    """By plain loops over the fingerprints and sketches that the recipe makes."""
    texts = chained(rng)
    path = write_jsonl("in.jsonl", [{"id": str(n), "text": t} for n, t in enumerate(texts)])
    done = run(
        "dedup", path, "--similarity", "0.9", "--weighting", "sublinear", "--keep", keep,
        "--certificates", "why.jsonl", "--buffer", 16,
    )
    batch = simindex.Recipe(sketch_bits=512).batch(texts)
    assert batch.sketch is not None
    prints = [int(row) for row in batch.rows[:, 0]]
    sketches = [[int(word) for word in row] for row in batch.sketch]

    def apart(a: int, b: int) -> int | None:
        if (prints[a] ^ prints[b]).bit_count() > 14:
            return None
        bits = sum(
            (x ^ y).bit_count() for x, y in zip(sketches[a], sketches[b], strict=True)
        )
        return bits if bits <= 73 else None

    order = range(len(texts))
    if keep == "longest":
        order = sorted(order, key=lambda row: -len(texts[row]))  # type: ignore[assignment]
    kept: list[int] = []
    for row in order:
        if keep == "none":
            before = [row for row in range(len(texts)) if row // 16 * 16 + 16 > row]
            others = [x for x in before if x != row and x < row // 16 * 16 + 16]
            if all(apart(row, x) is None for x in others):
                kept.append(row)
        elif all(apart(row, x) is None for x in kept):
            kept.append(row)
    printed = [int(json.loads(line)["id"]) for line in done.stdout.splitlines()]
    if keep == "none":
        # What is stored is searched with a recall below 1, so a few more may stay.
        assert set(kept) <= set(printed)
    else:
        assert 12 < len(kept) < len(texts) - 12
        assert abs(len(printed) - len(kept)) <= (len(kept) // 5 if keep == "first" else 0)
    assert keep != "longest" or printed == sorted(kept)
    for line in Path("why.jsonl").read_text().splitlines():
        one = json.loads(line)
        assert one["distance"] == apart(int(one["dropped"]), int(one["lost_to"]))
        assert one["similarity"] == round(cos(pi * one["distance"] / 512), 4) >= 0.9
        if keep != "none":
            assert int(one["lost_to"]) in printed


def test_a_mark_has_the_error_of_its_similarity(
    run: Run, write_jsonl: Any, rng: np.random.Generator
) -> None:
    """As all else that has an estimated similarity."""
    path = write_jsonl("in.jsonl", [{"id": n, "text": t} for n, t in enumerate(chained(rng))])
    done = run("dedup", path, "--mark", "--similarity", "0.8", "-q")
    marks = [json.loads(line)["near_duplicate_of"] for line in done.stdout.splitlines()]
    near = [mark for mark in marks if mark is not None]
    assert len(marks) == 72 and len(near) > 20
    for mark in near:
        assert list(mark) == ["key", "distance", "similarity", "similarity_error"]
        assert 0.8 <= mark["similarity"] <= 1 and 0 < mark["similarity_error"] < 0.05
