"""`fingerprint`: documents in, fingerprints out, as the Python API makes them."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.simhash.words import language_stop_words

Run = Callable[..., Any]
Spawn = Callable[..., subprocess.Popen[bytes]]

TEXTS = ["The quick brown fox", "jumps over the lazy dog", "漢字とかな and the dogs", "the the the"]
RECORDS = [{"id": f"k{n}", "text": text} for n, text in enumerate(TEXTS)]
LINES = "".join(json.dumps(record) + "\n" for record in RECORDS)


def digits_of(recipe: simindex.Recipe, texts: list[str] = TEXTS) -> list[str]:
    rows = recipe.batch(texts).rows.tolist()
    return ["".join(f"{word:016x}" for word in row) for row in rows]


@pytest.mark.parametrize(
    ("options", "recipe"),
    [
        ((), {}),
        (("--bits", 4096, "--ngram", "1,2"), {"bits": 4096, "ngram": (1, 2)}),
        (
            ("--unit", "char", "--ngram", 5, "--seed", "1k"),
            {"unit": "char", "ngram": 5, "seed": 1000},
        ),
        (("--projection", "gaussian"), {"projection": "gaussian"}),
        (("--projection", "ternary", "--ngram", 1), {"projection": "ternary", "ngram": 1}),
        (("--weighting", "binary", "--ngram", 1), {"weighting": "binary", "ngram": 1}),
        (("--weighting", "sublinear", "--ngram", 1), {"weighting": "sublinear", "ngram": 1}),
        (("--stemmer", "english", "--ngram", 1), {"stemmer": "english", "ngram": 1}),
        (("--stop-words", "@stop.txt", "--ngram", 1), {"stop_words": ["the"], "ngram": 1}),
        (("--stop-words", "en"), {"stop_words": language_stop_words("en")}),
    ],
)  # fmt: skip
def test_lines_are_the_fingerprints_of_the_recipe_asked_for(
    run: Run, options: tuple[Any, ...], recipe: dict[str, Any]
) -> None:
    # The last text is made of one stop word: it is left out.
    made = simindex.Recipe(**recipe)
    kept = len(made.batch(TEXTS))
    Path("stop.txt").write_text(" The \n\nof\n", encoding="utf-8-sig")
    expected = [f"{row}\tk{n}" for n, row in enumerate(digits_of(made))]
    assert run("fingerprint", "-", *options, input=LINES).stdout.splitlines() == expected
    given = [part for text in TEXTS for part in ("--text", text)]
    expected = [f"{row}\ttext:{n}" for n, row in enumerate(digits_of(made), 1)]
    assert run("fingerprint", *given, *options).stdout.splitlines() == expected
    assert len(expected) == kept == (3 if "stop_words" in recipe else 4)


def test_an_index_is_made_by_the_same_options(run: Run, objects: Any) -> None:
    """What `build` stores is what `fingerprint` prints, also with the index's own recipe."""
    options = (
        "--weighting", "sublinear-tfidf", "--projection", "ternary", "--seed", 3, "--bits", 192,
        "--stemmer", "english", "--stop-words", "en", "--ngram", "1,2", "--min-features", 2,
    )  # fmt: skip
    run("build", "i.sim", "-", *options, input=LINES)
    stored = {row["key"]: row["fingerprint"] for row in objects(run("export", "i.sim").stdout)}
    printed = run("fingerprint", "-", *options, input=LINES)
    assert {
        key: row for row, key in (line.split("\t") for line in printed.stdout.splitlines())
    } == stored
    assert "word weights learned from 4 documents, all of the stream" in printed.stderr
    assert len(stored) == 3
    again = run("fingerprint", "-", "--recipe", "i.sim", input=LINES)
    assert again.stdout == printed.stdout
    assert "learned" not in again.stderr
    other = run("fingerprint", "--text", TEXTS[0], "--recipe", "i.sim").stdout
    assert other == f"{stored['k0']}\ttext:1\n"


@pytest.mark.parametrize("options", [(), ("--projection", "gaussian"), ("--bits", "128")])
def test_weights_are_the_sums_to_the_last_bit(
    run: Run, objects: Any, options: tuple[str, ...]
) -> None:
    names = dict(zip(options[::2], options[1::2], strict=True))
    recipe = simindex.Recipe(
        projection=names.get("--projection", "sign"), bits=int(names.get("--bits", 64))
    )
    weights = recipe.batch(TEXTS).weights
    for number, line in enumerate(
        run("fingerprint", "-", "--weights", *options, input=LINES).stdout.splitlines()
    ):
        digits, key, sums = line.split("\t")
        assert (digits, key) == (digits_of(recipe)[number], f"k{number}")
        assert np.array_equal(np.array(sums.split(" "), dtype=np.float32), weights[number])
    listed = objects(run("fingerprint", "-", "--weights", "--json", *options, input=LINES).stdout)
    assert np.array_equal(np.array([row["weights"] for row in listed], np.float32), weights)


def test_texts_without_a_fingerprint_are_reported(run: Run, objects: Any) -> None:
    lines = LINES + '{"id": "none", "text": " ! "}\n{"id": "few", "text": "one"}\n'
    options = ("fingerprint", "-", "--min-features", 2)
    printed = run(*options, input=lines)
    assert [line.split("\t")[1] for line in printed.stdout.splitlines()] == ["k0", "k1", "k2", "k3"]
    assert "-:5: no fingerprint: it has no words that count\n" in printed.stderr
    assert "-:6: no fingerprint: too few features: 1 < 2\n" in printed.stderr
    assert "4 fingerprints of 6 documents" in printed.stderr
    listed = objects(run(*options, "--json", input=lines).stdout)
    assert [row["key"] for row in listed] == ["k0", "k1", "k2", "k3", "none", "few"]
    assert listed[4] == {"key": "none", "fingerprint": None, "skipped": "empty"}
    assert listed[5]["skipped"] == "too few features: 1 < 2"
    assert listed[0] == {"key": "k0", "fingerprint": digits_of(simindex.Recipe())[0]}


def test_features_are_shown_heaviest_first(run: Run, objects: Any) -> None:
    options = (
        "fingerprint", "--features", "--ngram", 1, "--weighting", "tf", "--text",
        "a dog and a\tcat and a bird",
    )
    printed = run(*options, "-q")
    heading, *shown = printed.stdout.splitlines()
    assert heading.endswith("\ttext:1")
    assert [line.split() for line in shown] == [
        ["3", "3", "a"], ["2", "2", "and"], ["1", "1", "bird"], ["1", "1", "cat"],
        ["1", "1", "dog"],
    ]  # fmt: skip
    assert printed.stderr == ""
    (row,) = objects(run(*options, "--json").stdout)
    assert row["features"][:2] == [
        {"feature": "a", "count": 3, "weight": 3.0}, {"feature": "and", "count": 2, "weight": 2.0},
    ]  # fmt: skip
    options = ("fingerprint", "--features", "--text", "! ", "--text", "a\udcff\\", "--unit", "char")
    empty, odd = objects(run(*options, "--json").stdout)
    assert empty["features"][0]["feature"] == "!"
    assert odd["features"] == [{"feature": "a\\udcff\\", "count": 1, "weight": 1.0}]
    assert run(*options).stdout.splitlines()[-1].endswith("  a\\udcff\\\\")


def test_every_kind_of_input_is_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a\tb.txt").write_text(TEXTS[0])
    (tmp_path / "t.csv").write_text(f"name,body\nx,{TEXTS[1]}\n")
    (tmp_path / "r.jsonl").write_text(LINES)
    (row, *_) = digits_of(simindex.Recipe())
    assert run("fingerprint", "d").stdout == f"{row}\td/a\\tb.txt\n"
    printed = run("fingerprint", "t.csv", "--text-field", "body", "--id-field", "name")
    assert printed.stdout.endswith("\tx\n")
    printed = run("fingerprint", "r.jsonl", "d", "--text", TEXTS[0]).stdout.splitlines()
    assert [line.split("\t")[1] for line in printed] == [
        "text:1", "k0", "k1", "k2", "k3", "d/a\\tb.txt",
    ]  # fmt: skip
    bad = LINES + "oops\n"
    assert "-:5: not JSON" in run("fingerprint", "-", input=bad, code=4).stderr
    passed = run("fingerprint", "-", "--max-errors", 1, input=bad)
    assert len(passed.stdout.splitlines()) == 4
    assert "skipped 1 bad record" in passed.stderr


@pytest.mark.parametrize("chunk", [1, 3])
def test_chunks_and_threads_do_not_show(
    run: Run, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    expected = run("fingerprint", "-", input=LINES).stdout
    monkeypatch.setattr("simindex.cli.chunks.CHUNK_BYTES", chunk)
    assert run("fingerprint", "-", "--threads", 2, input=LINES).stdout == expected


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "nothing to fingerprint: give an INPUT or --text"),
        (("--text", "a", "--bits", 100), "--bits 100 is not valid: give a multiple of 64"),
        (("--text", "a", "--bits", 8192), "--bits 8192 is not valid: give a multiple of 64"),
        (("--text", "a", "--ngram", "1,9"), "--ngram 1,9 is not valid: give a number from 1 to 5"),
        (("--text", "a", "--ngram", "x"), "'x' is not a list of numbers"),
        (("--text", "a", "--seed", -1), "'-1' is not a whole number of 0 to 4,294,967,295"),
        (("--text", "a", "--min-features", 0), "--min-features 0 is not valid"),
        (("--text", "a", "--weighting", "given"), "'given' is not one of"),
        (("--text", "a", "--projection", "x"), "'x' is not one of"),
        (("--text", "a", "--stemmer", "x"), "x is not an algorithm of Snowball: give one"),
        (("--text", "a", "--stop-words", "xx"), "xx is not a language with stop words"),
        (("--text", "a", "--stop-words", "xx"), "give @FILE with one word a line, or one of af"),
        (("--text", "a", "--stop-words", "@no"), "--stop-words @no cannot be read: No such file"),
        (("--text", "a", "--stop-words", "@latin1"), "@latin1 is not UTF-8 at byte 1: store it"),
        (("--text", "a", "--stemmer", "english", "--unit", "char"), '--unit char is not valid: give'
         ' "word"'),
        (("--text", "a", "--weighting", "idf"), "--weighting idf learns idf from documents, and"),
        (("--text", "a", "--recipe", "i.sim", "--bits", 64), "leave out the other options"),
        (("--text", "a", "--recipe", "i.sim", "--idf-first", 1), "leave out the other options"),
        (("--text", "a", "--recipe", "raw.sim"), "raw.sim stores no recipe, so it cannot"),
        (("--text", "a", "--recipe", "named.sim"), "of which an index stores only the name"),
        (("--text", "a", "--threads", 0), "--threads"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(run: Run, options: tuple[Any, ...], said: str) -> None:
    Path("latin1").write_bytes(b"a\xe4\n")
    simindex.open("raw.sim", "n").close()
    recipe = simindex.Recipe(tokenizer=language_stop_words)
    if "named.sim" in options:
        with simindex.open("named.sim", "n", options=simindex.IndexOptions(recipe=recipe)):
            pass
    refused = run("fingerprint", *options, code=2)
    assert said in " ".join(refused.stderr.split())
    assert refused.stdout == ""


def test_what_is_missing_ends_as_documented(run: Run) -> None:
    assert "i.sim" in run("fingerprint", "--text", "a", "--recipe", "i.sim", code=3).stderr
    assert "no such file" in run("fingerprint", "none.txt", code=4).stderr


def test_a_missing_extra_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("Stemmer", "stopwordsiso"):
        monkeypatch.setitem(__import__("sys").modules, module, None)
    refused = run("fingerprint", "--text", "a", "--stemmer", "english", code=2)
    assert "pip install 'simindex[stem]'" in refused.stderr
    refused = run("fingerprint", "--text", "a", "--stop-words", "en", code=2)
    assert "pip install 'simindex[stopwords]'" in refused.stderr


@pytest.mark.parametrize("encoding", ["iso8859-1", "iso8859-15"])
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_an_output_that_cannot_hold_a_name_is_told(
    spawn: Spawn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str,
    options: tuple[str, ...],
) -> None:
    (tmp_path / "漢.txt").write_text("a b c", encoding="utf-8")
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    process = spawn("fingerprint", "漢.txt", *options)
    out, complaint = process.communicate(timeout=30)
    assert (process.returncode, out) == (2, b"")
    told = complaint.decode()
    told = json.loads(told)["message"] if options else told.removeprefix("simindex: ")
    said = f"standard output is {encoding}, which cannot hold '\\u6f22': set PYTHONUTF8=1"
    assert told.startswith(said)


def test_ctrl_c_and_a_closed_pipe_are_quiet(spawn: Spawn, tmp_path: Path) -> None:
    process = spawn("fingerprint", "-", "--max-errors", 1)
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(LINES.encode() + b"oops\n")
    process.stdin.flush()
    assert b"not JSON" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=30)
    assert process.returncode == 130
    assert complaint == b"simindex: interrupted\n"
    (tmp_path / "a.jsonl").write_text(LINES * 2500)
    process = spawn("fingerprint", "a.jsonl", "-q")
    assert process.stdout is not None
    assert process.stdout.readline().endswith(b"\tk0\n")
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(timeout=30) == 141
    process.stderr.close()
    assert process.stdin is not None
    process.stdin.close()
