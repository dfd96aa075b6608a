"""`simindex diff`: why two documents match or not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import simindex
from simindex.cli.commands.diff import lines_of

Run = Callable[..., Any]

FOX = "the quick brown fox jumps over the lazy dog and runs away into the deep dark wood"
RED = FOX.replace("brown", "red")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fox.txt").write_text(FOX)
    (tmp_path / "red.txt").write_text(RED)
    (tmp_path / "two.jsonl").write_text('{"text": "one two"}\n{"text": "one three"}\n')
    (tmp_path / "empty.txt").write_text("!")
    return tmp_path


def test_files_and_texts_are_compared_alike(run: Run, folder: Path) -> None:
    of_files = run("diff", "fox.txt", "red.txt").stdout
    assert of_files == run("diff", "--text", FOX, RED).stdout
    expected = simindex.explain_pair(FOX, RED)
    assert f"distance {expected.distance} of 64 bits is within 7" in of_files
    assert f"cosine      {expected.cosine:.4f}, exact" in of_files
    assert "[-brown-]" in of_files and "{+red+}" in of_files
    told = json.loads(run("diff", "fox.txt", "red.txt", "--json").stdout)
    assert told["distance"] == expected.distance and told["name_a"] == "fox.txt"
    assert len(told["features"]) == len(expected.features or ())
    assert told == json.loads(run("diff", "fox.txt", "red.txt", "--output", "jsonl").stdout)


@pytest.mark.slow
def test_documents_of_an_index_have_words_where_files_are_unchanged(
    run: Run, folder: Path
) -> None:
    run("build", "i.sim", "fox.txt", "red.txt", "-q")
    assert "[-brown-]" in run("diff", "--index", "i.sim", "fox.txt", "red.txt").stdout
    (folder / "fox.txt").write_text("other words")
    without = run("diff", "--index", "i.sim", "fox.txt", "red.txt").stdout
    assert "[-brown-]" not in without and "flipped bits  " in without
    (folder / "old").mkdir()
    (folder / "old" / "texts.jsonl").write_text(
        "".join(json.dumps({"id": f"{name}.txt", "text": text}) + "\n"
                for name, text in (("fox", FOX), ("red", RED)))
    )
    again = run("diff", "--index", "i.sim", "fox.txt", "red.txt", "--input", "old").stdout
    assert "[-brown-]" in again
    lost = run("diff", "--index", "i.sim", "fox.txt", "red.txt", "--input", "two.jsonl")
    assert "the inputs have no text of fox.txt and red.txt" in lost.stderr
    missing = run("diff", "--index", "i.sim", "fox.txt", "nobody", code=2).stderr
    assert "no document 'nobody'" in missing


def test_ids_are_names_too(run: Run, folder: Path) -> None:
    with simindex.open(folder / "ids.sim", "n") as index:
        index.append([0, 7], ids=[1, 2])
    told = run("diff", "--index", "ids.sim", "1", "2", "-d", 2).stdout
    assert "distance 3 of 64 bits is not within 2" in told and "61, 62, 63" in told
    assert "is not an id" in run("diff", "--index", "ids.sim", "1", "x", code=2).stderr


def test_a_text_without_words_is_told(run: Run, folder: Path) -> None:
    found = run("diff", "fox.txt", "empty.txt")
    assert "a text without a fingerprint matches nothing" in found.stdout
    assert "warning: b has no features" in found.stderr
    assert not run("diff", "fox.txt", "empty.txt", "-q").stderr


def test_two_empty_texts_have_nothing_to_tell(run: Run, folder: Path) -> None:
    told = run("diff", "--text", "", "").stdout
    assert told == "match       no: a text without a fingerprint matches nothing\n"


def test_texts_that_differ_beyond_what_is_compared_are_not_called_equal(
    run: Run, folder: Path
) -> None:
    (folder / "long.txt").write_text("x" * 1_500_000)
    (folder / "longer.txt").write_text("x" * 1_500_000 + "y")
    told = run("diff", "long.txt", "longer.txt").stdout
    assert "equal, as far as they were compared: not to the end of the texts" in told


def test_long_runs_are_cut_unless_all_is_asked_for(run: Run, folder: Path) -> None:
    texts = " ".join(f"a{n}" for n in range(900)), " ".join(f"b{n}" for n in range(900))
    brief = run("diff", "--text", *texts).stdout
    assert "a0 a1" in brief and "a899-]" in brief and "a500" not in brief.split("words that")[1]
    assert "a500" in run("diff", "--text", *texts, "-v").stdout.split("words that")[1]


def test_a_similarity_decides_in_place_of_the_radius(run: Run, folder: Path) -> None:
    run("build", "i.sim", "fox.txt", "red.txt", "--sketch-bits", 512, "-q")
    asked = ("diff", "--index", "i.sim", "fox.txt", "red.txt", "--similarity")
    told = run(*asked, 0.6).stdout
    assert "match       yes: the estimated similarity is 0.6 or more, and distance " in told
    assert "the radius for candidates of similarity 0.6" in told
    assert "yes" not in run(*asked, 0.99).stdout
    plain = run("diff", "fox.txt", "red.txt", "--similarity", 0.5).stdout
    assert "match       yes: distance" in plain and "there are no sketches" in plain
    binary = ("--weighting", "binary", "--measure", "jaccard", "--similarity")
    assert "a resemblance, estimated" in run("diff", "fox.txt", "red.txt", *binary, 0.8).stdout


def test_one_word_that_decides_is_told(run: Run, folder: Path) -> None:
    found = run("diff", "--text", "--ngram", 1, "--weighting", "tf", "spam " * 99 + "ham", FOX)
    assert "'spam' has 99 % of the weight" in found.stderr


@pytest.mark.parametrize(("arguments", "words"), [
    (("fox.txt",), "takes 2 values"), (("fox.txt", "two.jsonl"), "more than one document"),
    (("fox.txt", "nobody"), "--text"), (("fox.txt", "red.txt", "--input", "."), "--index"),
    (("a", "b", "--index", "i.sim", "--text"), "leave out --text"),
    (("fox.txt", "red.txt", "--weighting", "tfidf"), "learns idf"),
    (("fox.txt", "red.txt", "-d", "65"), "65"),
    (("fox.txt", "red.txt", "-d", "3", "--similarity", "0.9"), "leave out --distance"),
    (("fox.txt", "red.txt", "--similarity", "0.3"), "give a cosine from 0.5 to 1"),
    (("fox.txt", "red.txt", "--measure", "jaccard"), "none is given"),
    (("fox.txt", "red.txt", "--recipe", "i.sim", "--bits", "64"), "leave out the other options"),
])
def test_wrong_calls_say_what_to_do(
    run: Run, folder: Path, arguments: tuple[str, ...], words: str
) -> None:
    code = 4 if "nobody" in arguments else 2
    assert words in run("diff", *arguments, code=code).stderr


def test_what_is_left_out_is_counted() -> None:
    text = " ".join(f"word{number}" for number in range(300))
    found = simindex.explain_pair(text, text.replace("7 ", "x "))
    brief, full = (list(lines_of(found, verbose=verbose)) for verbose in (False, True))
    assert len(brief) < len(full)
    assert any("more" in line for line in brief)
    assert not any(line.strip().endswith("more") for line in full)
    assert sum("[-" in line for line in full) == text.count("7 ")
