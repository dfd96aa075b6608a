"""`dedup`: greedy by order, byte for byte, whatever the chunks."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import simindex

Run = Callable[..., Any]
WORDS = [f"word{number}" for number in range(300)]


def corpus(n: int) -> list[str]:
    """Texts of which many are edited copies of earlier ones."""
    rng = random.Random(23)
    texts: list[str] = []
    for _ in range(n):
        if texts and rng.random() < 0.6:
            words = rng.choice(texts).split()
            for _ in range(rng.randrange(6)):
                words[rng.randrange(len(words))] = rng.choice(WORDS)
        else:
            words = rng.choices(WORDS, k=200)
        texts.append(" ".join(words))
    return texts


def kept_by_brute_force(
    texts: list[str], h: int, recipe: simindex.Recipe | None = None
) -> list[int]:
    rows = [int(row) for row in (recipe or simindex.Recipe()).batch(texts).fingerprints]
    kept: list[int] = []
    for number, row in enumerate(rows):
        if all((row ^ rows[earlier]).bit_count() > h for earlier in kept):
            kept.append(number)
    return kept


@pytest.mark.parametrize("h", [0, 3, 10])
@pytest.mark.parametrize("chunk", [1, 7, 4096])
def test_what_is_kept_does_not_depend_on_the_chunks(
    run: Run, h: int, chunk: int
) -> None:
    texts = corpus(80)
    lines = [json.dumps({"id": n, "text": text}) for n, text in enumerate(texts)]
    result = run("dedup", "-h", h, "--buffer", chunk, "--audit", "r.jsonl", input="\n".join(lines))
    kept = kept_by_brute_force(texts, h)
    assert 5 < len(kept) < 80
    assert result.stdout.splitlines() == [lines[number] for number in kept]
    assert f"kept {len(kept)} of 80 documents, dropped {80 - len(kept)} within {h}" in result.stderr
    dropped = [json.loads(line) for line in Path("r.jsonl").read_text().splitlines()]
    rows = [int(row) for row in simindex.Recipe().batch(texts).fingerprints]
    assert [int(record["dropped"]) for record in dropped] == sorted(set(range(80)) - set(kept))
    for record in dropped:
        gone, stays = int(record["dropped"]), int(record["lost_to"])
        assert stays in kept
        assert stays < gone
        distance = (rows[gone] ^ rows[stays]).bit_count()
        assert record["distance"] == distance <= h


def test_lines_come_out_byte_for_byte(run: Run) -> None:
    texts = corpus(3)
    one = '{ "text" :"%s",  "x": 1.0,"é":"\\u00e9" }\r\n' % texts[0]  # noqa: UP031
    two = json.dumps({"text": texts[0].upper()}) + "\n"
    three = json.dumps({"text": " ".join(WORDS)})
    data = b"\xef\xbb\xbf" + one.encode() + two.encode() + b"\n" + three.encode()
    result = run("dedup", input=data)
    assert result.stdout_bytes == one.encode() + three.encode() + b"\n"


def test_documents_without_fingerprint_are_kept_in_place(run: Run) -> None:
    lines = ['{"text": ""}', '{"text": "a b c"}', '{"text": "!"}', '{"text": "A, b; C."}']
    result = run("dedup", input="\n".join(lines))
    assert result.stdout.splitlines() == lines[:3]
    assert "-:1: no fingerprint: empty" in result.stderr


def test_other_inputs_come_out_as_json_lines(run: Run, tmp_path: Path, objects: Any) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.txt").write_text("one two three four")
    (tmp_path / "d" / "b.txt").write_text("One, two, three, four!")
    (tmp_path / "t.csv").write_text("id,text,n\n1,five six seven eight,x\n2,one two three four,y\n")
    result = run("dedup", "d", "t.csv")
    assert objects(result.stdout) == [
        {"id": "a.txt", "text": "one two three four"},
        {"id": "1", "text": "five six seven eight", "n": "x"},
    ]


def test_bad_records_stop_or_are_left_out(run: Run) -> None:
    lines = '{"text": "a b c"}\noops\n{"text": "d e f"}\n'
    assert "-:2: not JSON" in run("dedup", input=lines, code=4).stderr
    result = run("dedup", "--max-errors", 1, "--json", input=lines)
    assert result.stdout == '{"text": "a b c"}\n{"text": "d e f"}\n'
    summary = json.loads(result.stderr.splitlines()[-1])
    assert summary["kept"] == summary["documents"] == 2
    assert summary["bad_records"] == 1


def test_the_temporary_index_is_removed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    run("dedup", "--temp-dir", "t", input='{"text": "a b c"}\n')
    run("dedup", "--temp-dir", "t", input="oops\n", code=4)
    assert list((tmp_path / "t").iterdir()) == []


def test_folders_that_cannot_be_written_are_named(run: Run) -> None:
    assert "--temp-dir" in run("dedup", "--temp-dir", "no/where", input="", code=2).stderr
    assert "--audit no/r" in run("dedup", "--audit", "no/r", input="", code=2).stderr


def test_recipe_and_empty_input(run: Run) -> None:
    assert run("dedup", input="").stdout == ""
    lines = '{"text": "ab cd"}\n{"text": "abcd"}\n'
    assert len(run("dedup", input=lines).stdout.splitlines()) == 2
    Path("a.jsonl").write_text(lines)
    run("dedup", "a.jsonl", "--weighting", "tfidf", "--bits", 128, "--unit", "char")
    said = run("dedup", "--weighting", "tfidf", input="", code=2).stderr
    assert "--weighting tfidf learns from documents, and the inputs hold none" in said


IDF = ("--weighting", "tfidf", "--ngram", "1")


@pytest.mark.parametrize(
    ("options", "learned", "said"),
    [
        ((), 80, "80 documents, all of the stream"),
        (("--idf-first", 7), 7, "the first 7 documents of the stream"),
    ],
)
def test_a_stream_is_deduplicated_by_the_idf_of_its_first_documents(
    run: Run, monkeypatch: pytest.MonkeyPatch, options: tuple[Any, ...], learned: int, said: str
) -> None:
    """Those that were held come out byte for byte, too."""
    texts = corpus(80)
    lines = [json.dumps({"id": n, "x": [n], "text": text}) + " " for n, text in enumerate(texts)]
    result = run("dedup", *IDF, *options, input="\n".join(lines))
    recipe = simindex.Recipe(weighting="tfidf", ngram=1).fit(texts[:learned])
    kept = kept_by_brute_force(texts, 3, recipe)
    assert kept != kept_by_brute_force(texts, 3)
    assert result.stdout.splitlines() == [lines[number] for number in kept]
    assert f"idf learned from {said}\n" in result.stderr
    summary = run("dedup", *IDF, *options, "--json", input="\n".join(lines)).stderr
    assert json.loads(summary)["idf"] == {"documents": learned, "first": learned}


def test_files_are_deduplicated_by_the_idf_of_a_sample(run: Run, objects: Any) -> None:
    texts = corpus(40)
    table = "id,text,n\n" + "".join(f"k{n},{text},{n}\n" for n, text in enumerate(texts))
    Path("a.csv").write_text(table)
    recipe = simindex.Recipe(weighting="tfidf", ngram=1)
    for options, learned in ((("--idf-sample", 1), 40), (("--idf-first", 3), 3)):
        kept = kept_by_brute_force(texts, 3, recipe.fit(texts[:learned]))
        result = run("dedup", "a.csv", *IDF, *options)
        assert objects(result.stdout) == [
            {"id": f"k{n}", "text": texts[n], "n": str(n)} for n in kept
        ]
    result = run("dedup", "-", *IDF, "--idf-sample", 1, input="", code=2)
    assert "--idf-sample reads the inputs twice" in result.stderr


def test_what_a_stream_holds_counts_whole_lines(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simindex.cli.learning.MOST_HELD_BYTES", 10_000)
    lines = [json.dumps({"text": f"w{n}", "other": "x" * 2000}) for n in range(9)]
    result = run("dedup", *IDF, input="\n".join(lines))
    assert result.stdout.splitlines() == lines
    assert "idf learned from the first 5 documents of the stream" in result.stderr
