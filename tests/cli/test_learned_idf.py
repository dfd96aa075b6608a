"""Which documents `build` learns idf from, and that it says so."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import mmh3
import pytest

import simindex
from simindex.cli import learned_idf
from simindex.cli.progress import Extent
from simindex.inputs.document import Intake
from simindex.inputs.formats import FORMATS
from simindex.inputs.json_lines import read_jsonl
from simindex.inputs.reading import ReadOptions
from simindex.simhash.weighting import WEIGHTINGS

Run = Callable[..., Any]
Spawn = Callable[..., subprocess.Popen[bytes]]

LEARNED = [name for name in WEIGHTINGS if not simindex.Recipe(weighting=name).fitted]
TFIDF = ("--weighting", "tfidf", "--ngram", "1")


def records_of(number: int) -> list[dict[str, Any]]:
    rng = random.Random(number)
    return [
        {"id": f"k{n}", "text": " ".join(f"w{rng.randrange(60)}" for _ in range(20))}
        for n in range(number)
    ]


RECORDS = records_of(40)
TEXTS = [record["text"] for record in RECORDS]
LINES = "".join(json.dumps(record) + "\n" for record in RECORDS)


def fitted(texts: list[str], weighting: Any = "tfidf") -> simindex.Recipe:
    return simindex.Recipe(weighting=weighting, ngram=1).fit(texts)


def recipe_of(path: str = "i.sim") -> Any:
    with simindex.open(path, "r") as index:
        assert [finding for finding in index.check() if finding.severity == "error"] == []
        return index.recipe


def exported(run: Run, path: str = "i.sim") -> dict[str, str]:
    rows = [json.loads(line) for line in run("export", path).stdout.splitlines()]
    return {row["key"]: row["fingerprint"] for row in rows}


def expected(recipe: simindex.Recipe, texts: list[str]) -> dict[str, str]:
    rows = recipe.batch(texts).fingerprints.tolist()
    return {f"k{n}": f"{row:016x}" for n, row in enumerate(rows)}


@pytest.fixture
def stored(write_jsonl: Callable[..., Path]) -> Path:
    return write_jsonl("a.jsonl", RECORDS)


@pytest.mark.parametrize("weighting", LEARNED)
def test_files_are_learned_from_whole_by_default(run: Run, stored: Path, weighting: str) -> None:
    built = run("build", "i.sim", stored, "--weighting", weighting, "--ngram", 1)
    assert "word weights learned from 40 documents, all of the inputs\n" in built.stderr
    assert recipe_of() == fitted(TEXTS, weighting)
    assert exported(run) == expected(fitted(TEXTS, weighting), TEXTS)


@pytest.mark.parametrize(("most_bytes", "readings"), [(1 << 20, 1), (3000, 2)])
@pytest.mark.parametrize("mark", [(), ("--mark",)])
def test_files_whose_texts_can_be_held_are_read_once(
    run: Run, stored: Path, monkeypatch: pytest.MonkeyPatch, most_bytes: int, readings: int,
    mark: tuple[str, ...],
) -> None:
    monkeypatch.setattr(learned_idf, "MOST_HELD_BYTES", most_bytes)
    opened = []

    def read_stored(stream: Any, source: Any) -> Any:
        opened.append(source.path)
        return read_jsonl(stream, source)

    monkeypatch.setitem(FORMATS, "jsonl", replace(FORMATS["jsonl"], read=read_stored))
    built = run("dedup", stored, "--index", "i.sim", *TFIDF, *mark)
    assert opened == [str(stored)] * readings
    assert "word weights learned from 40 documents, all of the inputs\n" in built.stderr
    assert recipe_of() == fitted(TEXTS)
    lines = [json.loads(line) for line in built.stdout.splitlines()]
    assert [{"id": one["id"], "text": one["text"]} for one in lines] == RECORDS
    assert exported(run) == expected(fitted(TEXTS), TEXTS)


@pytest.mark.parametrize(
    ("held", "beyond"), [(190, False), (310, False), (330, True), (2000, True)]
)
def test_what_files_will_take_is_known_from_their_size(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, held: int, beyond: bool
) -> None:
    """A tenth of the file is read, and at least an eighth of what is held at most is held."""
    monkeypatch.setattr(learned_idf, "MOST_HELD_BYTES", 1600)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"x" * 1000)
    intake = Intake()
    intake.read_bytes = 100

    def is_beyond(*inputs: str) -> bool:
        return learned_idf.Limit(Extent(intake, inputs, ReadOptions())).is_beyond(held)

    assert is_beyond(str(path)) is beyond
    assert is_beyond(str(tmp_path)) is (held > 1600), "a folder is not looked through"
    assert is_beyond(str(path), "-") is (held > 1600)
    assert learned_idf.Limit(None).is_beyond(held) is (held > 1600)


def test_a_bad_record_counts_once_whether_texts_are_held_or_not(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "b.jsonl").write_text(LINES + "oops\n")
    for most_bytes in (1 << 20, 3000):
        monkeypatch.setattr(learned_idf, "MOST_HELD_BYTES", most_bytes)
        made = run("build", f"{most_bytes}.sim", "b.jsonl", *TFIDF, "--max-errors", 1, "--json")
        assert json.loads(made.stdout)["bad_records"] == 1
        assert made.stderr.count("b.jsonl:41") == 1


def test_a_sample_is_chosen_by_key(run: Run, stored: Path) -> None:
    """Every document is indexed, and those whose key says so are learned from."""
    built = run("build", "i.sim", stored, *TFIDF, "--idf-sample", 0.4)
    chosen = [
        record["text"] for record in RECORDS
        if mmh3.hash64(record["id"], 1, signed=False)[0] / 2**64 < 0.4
    ]
    assert 5 < len(chosen) < 30
    said = f"word weights learned from {len(chosen)} documents, a sample of 0.4 of the inputs\n"
    assert said in built.stderr
    assert recipe_of() == fitted(chosen)
    assert exported(run) == expected(fitted(chosen), TEXTS)
    summary = run("build", "j.sim", stored, *TFIDF, "--idf-sample", 0.4, "--json")
    assert json.loads(summary.stdout)["idf"] == {"documents": len(chosen), "sample": 0.4}
    assert "idf" not in summary.stderr
    assert "learned" not in run("build", "k.sim", stored, *TFIDF, "--quiet").stderr


def test_samples_have_their_share_and_contain_smaller_ones() -> None:
    keys = [f"key {n}" for n in range(10_000)]
    chosen = {
        share: {k for k in keys if learned_idf.in_sample(k, share)} for share in (0.1, 0.3, 1)
    }
    assert chosen[0.1] < chosen[0.3] < chosen[1] == set(keys)
    # Five standard deviations of a binomial number.
    assert abs(len(chosen[0.1]) - 1000) < 150
    assert abs(len(chosen[0.3]) - 3000) < 230


def test_a_stream_is_learned_from_its_first_documents(run: Run) -> None:
    """And these and all others are indexed, though it can be read only once."""
    built = run("build", "i.sim", "-", *TFIDF, "--idf-first", 7, input=LINES)
    assert "word weights learned from the first 7 documents of the stream\n" in built.stderr
    assert "40 documents (" in built.stderr
    assert recipe_of() == fitted(TEXTS[:7])
    assert exported(run) == expected(fitted(TEXTS[:7]), TEXTS)
    summary = run("build", "j.sim", "-", *TFIDF, "--idf-first", 7, "--json", input=LINES)
    assert json.loads(summary.stdout)["idf"] == {"documents": 7, "first": 7}
    assert json.loads(summary.stdout)["documents"] == 40


def test_a_short_stream_is_learned_from_whole(run: Run) -> None:
    built = run("build", "i.sim", "-", *TFIDF, input=LINES)
    assert "word weights learned from 40 documents, all of the stream\n" in built.stderr
    assert exported(run) == expected(fitted(TEXTS), TEXTS)


@pytest.mark.slow
def test_ten_thousand_documents_of_a_stream_are_learned_from_by_default(run: Run) -> None:
    lines = "".join(f'{{"text": "a b{n % 7} c{n}"}}\n' for n in range(10_003))
    built = run("build", "i.sim", "-", *TFIDF, input=lines)
    assert "word weights learned from the first 10,000 documents of the stream\n" in built.stderr
    assert recipe_of().idf.documents == 10_000
    assert "holds 10,003 rows" in built.stderr


def test_what_a_stream_holds_in_memory_is_bounded(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learned_idf, "MOST_HELD_BYTES", 3000)
    lines = "".join(json.dumps({"id": f"k{n}", "text": f"w{n} " * 200}) + "\n" for n in range(9))
    built = run("build", "i.sim", "-", *TFIDF, "--idf-first", 8, input=lines)
    said = r"learned from the first 5 documents of the stream: their [34] kB of text are the most"
    assert re.search(said, built.stderr)  # a Python string takes less from Python 3.12 on
    assert recipe_of().idf.documents == 5
    assert len(exported(run)) == 9


def test_a_pipe_with_a_name_is_a_stream(run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=(LINES,))
    writer.start()
    built = run("build", "i.sim", "pipe", "--format", "jsonl", *TFIDF, "--idf-first", 9)
    writer.join(timeout=30)
    assert "from the first 9 documents of the stream\n" in built.stderr
    assert exported(run) == expected(fitted(TEXTS[:9]), TEXTS)


def test_files_are_read_once_when_only_the_first_are_learned_from(run: Run, stored: Path) -> None:
    built = run("build", "i.sim", stored, *TFIDF, "--idf-first", 3)
    assert "word weights learned from the first 3 documents of the inputs\n" in built.stderr
    assert exported(run) == expected(fitted(TEXTS[:3]), TEXTS)


def test_a_bad_record_is_reported_once_and_places_stay_known(run: Run) -> None:
    lines = [*LINES.splitlines()[:2], "oops", '{"id": "empty", "text": " "}', "oops"]
    given = "\n".join([*lines, *LINES.splitlines()[2:]])
    options = (*TFIDF, "--idf-first", 3)
    built = run("build", "i.sim", "-", *options, "--max-errors", 2, input=given)
    assert built.stderr.count("-:3: not JSON") == built.stderr.count("-:5: not JSON") == 1
    assert "-:4: no fingerprint: empty" in built.stderr
    assert "skipped 2 bad records" in built.stderr
    assert recipe_of() == fitted([*TEXTS[:2], " "])
    for most in (0, 1):
        run("build", "j.sim", "-", *options, "--max-errors", most, input=given, code=4)
        assert not Path("j.sim").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((*TFIDF, "--idf-sample", "0"), "above 0 and up to 1"),
        ((*TFIDF, "--idf-sample", "1.01"), "above 0 and up to 1"),
        ((*TFIDF, "--idf-sample", "-0.5"), "above 0 and up to 1"),
        ((*TFIDF, "--idf-sample", "nan"), "above 0 and up to 1"),
        ((*TFIDF, "--idf-sample", "1e-12"), "holds none of 40 documents: give a larger"),
        ((*TFIDF, "--idf-first", "0"), "--idf-first"),
        ((*TFIDF, "--idf-first", "5", "--idf-sample", "0.5"), "exclude each other"),
        (
            ("--weighting", "tf", "--idf-sample", "0.5"),
            "--idf-sample is about idf, and --weighting tf learns none",
        ),
        (("--weighting", "binary", "--idf-first", "5"), "--weighting binary learns none"),
    ],
)  # fmt: skip
def test_learning_that_cannot_be_is_refused(
    run: Run, stored: Path, options: tuple[str, ...], said: str
) -> None:
    refused = run("build", "i.sim", stored, *options, code=2)
    assert said in refused.stderr
    assert not Path("i.sim").exists()


def test_nothing_is_built_where_nothing_is_learned(run: Run, write_jsonl: Any) -> None:
    empty = write_jsonl("none.jsonl", [])
    for given in (empty, "-"):
        refused = run("build", "i.sim", given, *TFIDF, input="", code=2)
        assert "tfidf learns from documents, and the inputs hold none" in refused.stderr
    refused = run("build", "i.sim", "-", *TFIDF, "--idf-sample", 0.5, input=LINES, code=2)
    assert "reads the inputs twice" in refused.stderr
    assert not Path("i.sim").exists()


def test_appending_goes_by_what_the_index_has_learned(run: Run, stored: Path) -> None:
    run("build", "i.sim", stored, *TFIDF, "--idf-first", 3)
    for option in (("--idf-first", 3), ("--idf-sample", 1)):
        told = run("build", "i.sim", stored, "--append", *TFIDF, *option).stderr
        assert "learned" not in told
    built = run("build", "i.sim", "-", "--append", input=LINES)
    assert "learned" not in built.stderr
    assert recipe_of() == fitted(TEXTS[:3])
    summary = run("build", "i.sim", stored, "--append", "--json")
    assert "idf" not in json.loads(summary.stdout)


@pytest.mark.parametrize("options", [(), ("--idf-first", "9")])
def test_learning_shows_its_progress(
    on_terminal: Callable[..., tuple[int, bytes]], tmp_path: Path, options: tuple[str, ...]
) -> None:
    (tmp_path / "a.jsonl").write_text(LINES)
    code, shown = on_terminal("build", "i.sim", "a.jsonl", *TFIDF, *options)
    assert code == 0
    assert shown.index(b"learning word weights") < shown.index(b"indexing")


def test_ctrl_c_while_learning_leaves_nothing(spawn: Spawn, tmp_path: Path) -> None:
    process = spawn("build", "i.sim", "-", *TFIDF, "--max-errors", 1)
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(LINES.encode() + b"oops\n")
    process.stdin.flush()
    assert b"not JSON" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=30)
    assert process.returncode == 130
    assert complaint == b"simindex: interrupted: i.sim was not created\n"
    assert not (tmp_path / "i.sim").exists()


def test_who_waits_for_a_held_stream_is_told_why(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learned_idf, "HOLDING_S", 0)
    given = "".join(f'{{"text": "text {n}"}}\n' for n in range(3))
    told = "holding the first 10,000 documents to learn word weights from them; with --weighting"
    assert run("dedup", input=given).stderr.count(told) == 1
    assert "holding" not in run("dedup", "--weighting", "sublinear", input=given).stderr
