"""`stats` tells what an index holds, as a table or an object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import simindex
from simindex.simhash.words import language_stop_words

Run = Callable[..., Any]


def test_stats_are_a_table_or_an_object(run: Run, keyed: str, objects: Any) -> None:
    table = dict(line.split(maxsplit=1) for line in run("stats", keyed, "-v").stdout.splitlines())
    assert table["rows"].startswith("10,")
    assert table["keys"] == "str"
    assert "unit word" in table["recipe"]
    (answer,) = objects(run("stats", keyed, "--json").stdout)
    assert answer["rows"] == 10
    assert answer["recipe"]["unit"] == "word"


def test_stats_tell_the_recipe_in_one_line(run: Run) -> None:
    options = ("--stop-words", "en", "--ngram", "1,2", "--weighting", "tf", "--stemmer", "english")
    run("build", "i.sim", "-", *options, input='{"text": "many foxes jumped"}')
    told = run("stats", "i.sim").stdout
    assert "1 and 2 words in a row, weighting tf, stemmer english/" in told
    assert "without stop words" in told
    (line,) = [x for x in run("stats", "i.sim", "-v").stdout.splitlines() if x.startswith("recipe")]
    assert "ngram 1,2, weighting tf, seed 0, " in line
    assert f"stop_words ({len(language_stop_words('en')):,}), stemmer english/" in line
    assert "idf" not in line


def test_stats_name_the_hottest_headers_and_fingerprints(run: Run, objects: Any) -> None:
    rows = np.arange(100, dtype=np.uint64) << np.uint64(57)
    rows[:7] = 0xABCD << 48
    with simindex.open("i.sim", "n") as index:
        index.append(rows)
    assert "headers" not in run("stats", "i.sim").stdout
    lines = run("stats", "i.sim", "--skew").stdout.splitlines()
    header = f"{0xABCD:016b}"[:3]
    assert f"{'':<11} {header}  23 rows" in lines
    assert lines[-1] == f"{'':<11} abcd000000000000  7 rows"
    (answer,) = objects(run("stats", "i.sim", "--skew", "--json").stdout)
    assert answer["skew"]["headers"][0] == {"value": header, "rows": 23}
    assert answer["skew"]["fingerprints"] == [{"value": "abcd000000000000", "rows": 7}]


def test_stats_tell_the_recall_that_was_measured(run: Run, objects: Any) -> None:
    with simindex.open("i.sim", "n") as index:
        index.append(np.arange(9, dtype=np.uint64))
        index.commit()
        index.audit(h=2, sample=5)
    assert "recall unknown: the index keeps no weights" in run("stats", "i.sim", "-v").stdout
    assert "recall      unknown: the index keeps no weights" in run("stats", "i.sim").stdout
    weights = np.where(np.random.default_rng(1).random((9, 64)) < 0.5, -1, 1).astype(np.float32)
    weights[:] = weights[0]
    weights[np.arange(1, 9), np.arange(1, 9)] *= -1
    bits = np.packbits(weights > 0, axis=1).view(">u8").astype(np.uint64)
    with simindex.open("j.sim", "n") as index:
        index.append(simindex.Batch(bits, weights=weights))
        index.commit()
        measured = index.audit(h=2, sample=5)
    assert measured.matches == 5 * 8
    assert f"recall {measured.recall:.4f} (" in run("stats", "j.sim", "-v").stdout
    assert f"recall      {measured.recall:.4f} (" in run("stats", "j.sim").stdout
    (answer,) = objects(run("stats", "j.sim", "--json").stdout)
    assert answer["audit"]["rows_with_match"] == 5


ENGINE = (
    "segment", "pending", "tombstone", "structure", "header", "flip", "catalog", "probe", "psm",
)


def test_by_default_the_words_are_those_of_users(run: Run, keyed: str) -> None:
    """Of all commands that tell of the inside; -v tells it all."""
    text = ("--text", "some text that is number 3 of ten")
    for command in (("stats", keyed), ("explain", keyed, *text), ("query", keyed, *text)):
        told = run(*command)
        for word in ENGINE:
            assert word not in (told.stdout + told.stderr).lower()
    assert "rows        10, one for each document" in run("stats", keyed).stdout
    run("delete", keyed, "--key", "k1")
    assert "segments" in run("stats", keyed, "--verbose").stdout


def test_stats_of_an_index_without_rows_say_what_its_first_rows_decide(run: Run) -> None:
    simindex.open("i.sim", "n").close()
    told = run("stats", "i.sim").stdout
    assert "rows        none yet\n" in told
    assert "keys        not decided yet\n" in told
    assert "fingerprint 64 bits; no recipe yet: the first documents bring it\n" in told
    assert "recipe      64 bits; no recipe yet" in run("stats", "i.sim", "-v").stdout
    simindex.open("k.sim", "n", options=simindex.IndexOptions(keys="str")).close()
    assert "keys        texts\n" in run("stats", "k.sim").stdout
    with simindex.open("i.sim", "w") as index:
        index.append(np.arange(3, dtype=np.uint64))
    assert "it was built from fingerprints" in run("stats", "i.sim").stdout


def test_metrics_are_those_of_the_index(run: Run, keyed: str) -> None:
    printed = run("stats", keyed, "--metrics").stdout
    with simindex.open(keyed) as index:
        assert printed == index.metrics(calls=False)
    assert "--metrics has a format of its own" in run(
        "stats", keyed, "--metrics", "--json", code=2
    ).stderr
