"""Texts too short for the radius are counted exactly, and told once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from simindex.simhash.shortest_text import SHORTEST

Run = Callable[..., Any]

WORDS = SHORTEST["word", (1,), "balanced-tfidf"][64]
"""By radius from 3 on."""


def documents(*lengths: int) -> str:
    """Of so many different words each, all of them twice."""
    return "".join(
        json.dumps({"id": f"d{n}", "text": " ".join(f"w{n}x{word} W{n}x{word}" for word in
                                                  range(length))}) + "\n"
        for n, length in enumerate(lengths)
    )


@pytest.mark.parametrize("command", ["build", "dedup"])
@pytest.mark.parametrize("h", [None, 3, 7, 10])
def test_short_texts_are_counted_by_their_different_words(
    run: Run, command: str, h: int | None
) -> None:
    least = WORDS[(7 if h is None else h) - 3]
    given = documents(1, least - 1, least, least + 1, 3 * least, *range(3 * least, 3 * least + 30))
    radius = () if h is None else ("-d", h)
    place = ("i.sim", "-", "--overwrite") if command == "build" else ()
    told = run(command, *place, *radius, input=given).stderr
    assert told.count("different words") == 1
    said = next(line for line in told.splitlines() if "different words" in line)
    assert f"2 of 35 documents have fewer than {least} different words" in said
    assert "Equal texts are always found" in said
    result = run(command, *place, *radius, "--json", input=given)
    summary = result.stdout if command == "build" else result.stderr
    assert json.loads(summary.splitlines()[-1])["short_texts"] == 2


def test_nothing_is_said_of_long_texts_nor_of_recipes_that_were_not_measured(run: Run) -> None:
    assert "fewer than" not in run("build", "a.sim", "-", input=documents(*range(60, 100))).stderr
    for options in (("--unit", "char"), ("--ngram", 4), ("--weighting", "sublinear-tfidf")):
        told = run("build", "i.sim", "-", "--overwrite", *options, input=documents(*range(1, 40)))
        assert "fewer than" not in told.stderr


def test_what_helps_is_larger_and_enough(run: Run) -> None:
    given = documents(*range(1, 41))
    told = run("build", "i.sim", "-", input=given).stderr
    assert ("-d 10 finds nine of ten such edits in texts of 20 words or more, --bits 256 -d 52 in "
            "texts of 10 or more.") in told
    for options, short in ((("-d", 10), 19), (("--bits", 256, "-d", 52), 9)):
        told = run("build", "i.sim", "-", "--overwrite", *options, input=given).stderr
        assert f"{short} of 40 documents have fewer than {short + 1} different words" in told
    told = run("build", "i.sim", "-", "--overwrite", "-d", 20, input=given).stderr
    assert "9 of 40 documents have fewer than 10" in told and "-d 20" not in told


def test_what_helps_can_be_given_to_the_command(run: Run) -> None:
    """A similarity chooses the radius, and an index that is there has a width."""
    given = documents(*range(1, 41))
    told = run("dedup", "--similarity", 0.9, input=given).stderr
    assert "of 40 documents have fewer than" in told
    assert "A smaller --similarity finds more of these edits. Equal texts" in told
    assert "-d " not in told and "--bits" not in told
    run("dedup", "--index", "i.sim", input=given)
    told = run("dedup", "--index", "i.sim", input=given.replace('"d', '"e')).stderr
    assert " -d 10 finds nine of ten such edits in texts of 20 words or more. Equal" in told
    told = run("dedup", input=given).stderr
    assert " -d 10 finds nine of ten such edits in texts of 20 words or more, --bits 256 " in told


def test_few_short_texts_among_many_are_counted_and_not_spoken_of(run: Run) -> None:
    for others, spoken_of in ((99, True), (100, False)):
        given = documents(5, *[3 * WORDS[4]] * others)
        told = run("build", "i.sim", "-", "--overwrite", input=given).stderr
        assert ("1 of 100 documents has fewer than" in told) == spoken_of
        assert ("different words" in told) == spoken_of
    done = run("build", "i.sim", "-", "--overwrite", "--json", input=given)
    assert json.loads(done.stdout)["short_texts"] == 1


def test_phrases_are_called_so(run: Run) -> None:
    one = documents(5)
    three = ("--ngram", 3, "--weighting", "tf")
    for options, noun in (((), "words and phrases"), (three, "phrases")):
        told = run("build", "i.sim", "-", "--overwrite", *options, input=one).stderr
        assert f"different {noun}:" in told
