"""`simindex gate`: exit codes, reports, and what is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gate_findings import HOSTILE
from sarif_log import faults

import simindex

Run = Callable[..., Any]

WORDS = [f"{a}{b}" for a in "abcdefgh" for b in ("ten", "ling", "oro", "umba", "ish")]


def text(seed: int, words: int = 60) -> str:
    return " ".join(np.random.default_rng(seed).choice(WORDS, words))


def edited(known: str) -> str:
    """Three of sixty words replaced."""
    words = known.split()
    words[7], words[31], words[55] = WORDS[0], WORDS[9], WORDS[20]
    return " ".join(words)


@pytest.fixture
def known(run: Run, write_jsonl: Callable[..., Path]) -> str:
    """An index of forty documents, with sketches."""
    write_jsonl("known.jsonl", [{"id": f"known-{n}", "text": text(n)} for n in range(40)])
    run("build", "k.sim", "known.jsonl", "--sketch-bits", 512, "-q")
    return "k.sim"


@pytest.fixture
def collection(write_jsonl: Callable[..., Path]) -> str:
    """Ten documents; the third and the eighth are copies of known ones."""
    records = [{"id": f"doc-{n}", "text": text(100 + n)} for n in range(10)]
    records[2]["text"], records[7]["text"] = edited(text(5)), text(30)
    return str(write_jsonl("new.jsonl", records))


def test_copies_are_told_with_their_places(run: Run, known: str, collection: str) -> None:
    done = run("gate", "--against", known, collection, code=1)
    first, second = (line.split("\t") for line in done.stdout.splitlines())
    assert first[:3] == ["new.jsonl:3", "doc-2", "known-5"] and 0.85 <= float(first[3]) < 1
    assert second == ["new.jsonl:8", "doc-7", "known-30", "1.000"]
    assert "did not pass: 2 of 10 documents have a match in k.sim" in done.stderr
    assert "similarity 0.85 or more" in done.stderr


@pytest.mark.parametrize(("options", "code"), [
    ([], 1),
    (["--max-matches", 2], 1), (["--max-matches", 3], 0),
    (["--max-share", 0.2], 1), (["--max-share", 0.21], 0),
    (["--max-share", 0.21, "--max-matches", 2], 1),
    (["--max-share", 0.5, "--max-matches", 5], 0),
    (["-d", 0, "--max-matches", 2], 0), (["-d", 0], 1),
    (["--similarity", 0.999, "--max-matches", 2], 0),
])
def test_the_exit_code_goes_by_the_limits(
    run: Run, known: str, collection: str, options: list[Any], code: int
) -> None:
    done = run("gate", "--against", known, collection, *options, code=code)
    assert ("did not pass" in done.stderr) == bool(code)


def test_a_gate_goes_by_a_resemblance(run: Run, known: str, collection: str) -> None:
    run("build", "b.sim", "known.jsonl", "--sketch-bits", 512, "--weighting", "binary", "-q")
    asked = ("gate", "--against", "b.sim", collection, "--measure", "jaccard", "--similarity")
    done = run(*asked, 0.6, code=1)
    assert "doc-2\tknown-5\t" in done.stdout and "doc-7\tknown-30\t1.000" in done.stdout
    assert "(resemblance 0.6 or more; 1 or more are too many)" in done.stderr
    verdict = json.loads(run(*asked, 0.99, "--json", code=1).stdout.splitlines()[-1])
    assert (verdict["matched"], verdict["similarity"], verdict["measure"]) == (1, 0.99, "jaccard")


@pytest.mark.parametrize(("options", "said"), [
    (["--max-matches", "0"], "1 or more"),
    (["--max-share", "0"], "--max-share"),
    (["--max-share", "1.5"], "--max-share"),
    (["--max-share", "nan"], "--max-share"),
    (["--similarity", "2"], "--similarity"),
    (["--similarity", "0.9", "-d", "3"], "leave out --distance"),
    (["--measure", "jaccard"], "none is given"),
    (["--measure", "jaccard", "--similarity", "0.8"], "weighting='balanced-tfidf'"),
    (["--recall", "2"], "--recall"),
    (["--report", "r.txt"], "--report-format"),
    (["--report", "a.html", "--report", "a.html"], "given twice"),
    (["--report", "k.sim/r.html"], "the index k.sim"),
    (["--report", "new.jsonl"], "the input new.jsonl"),
    (["--report", "none/r.html"], "--report"),
    (["--report-format", "html", "--json"], "--json"),
])
def test_wrong_calls_end_with_two(
    run: Run, known: str, collection: str, options: list[str], said: str
) -> None:
    before = sorted(path.name for path in Path().iterdir())
    assert said in run("gate", "--against", known, collection, *options, code=2).stderr
    assert sorted(path.name for path in Path().iterdir()) == before


def test_a_missing_index_or_input_is_told(run: Run, known: str, collection: str) -> None:
    assert "none.sim" in run("gate", "--against", "none.sim", collection, code=3).stderr
    assert "none.jsonl" in run("gate", "--against", known, "none.jsonl", code=4).stderr
    assert "--against" in run("gate", collection, code=2).stderr


def test_inputs_without_a_document_do_not_pass(run: Run, known: str) -> None:
    """And leave no report, which would say that all is well."""
    Path("empty.jsonl").write_text("")
    said = run("gate", "--against", known, "empty.jsonl", "--report", "r.html", code=1).stderr
    assert "nothing was checked: the inputs hold no document" in said
    assert not Path("r.html").exists()


def test_inputs_without_a_fingerprint_do_not_pass(
    run: Run, known: str, write_jsonl: Callable[..., Path]
) -> None:
    wordless = write_jsonl("wordless.jsonl", [{"text": ""}, {"text": "!!!"}])
    said = run("gate", "--against", known, wordless, "--report", "r.html", code=1).stderr
    assert "nothing was checked: no document has a fingerprint" in said
    assert not Path("r.html").exists()
    some = write_jsonl("some.jsonl", [{"text": ""}, {"text": text(900)}])
    assert "passed: 0 of 2 documents" in run("gate", "--against", known, some).stderr


def test_an_index_without_documents_is_told(run: Run, collection: str) -> None:
    options = simindex.IndexOptions(recipe=simindex.Recipe(sketch_bits=512), keys=True)
    simindex.open("none.sim", "n", options=options).close()
    said = run("gate", "--against", "none.sim", collection).stderr
    assert "none.sim holds no document, so nothing can match" in said


def test_reports_of_all_kinds_come_from_one_run(
    run: Run, known: str, collection: str, objects: Callable[[str], list[dict[str, Any]]]
) -> None:
    names = ("r.jsonl", "r.sarif", "r.html")
    done = run("gate", "--against", known, collection, *(
        part for name in names for part in ("--report", name)
    ), code=1)
    assert done.stdout == ""
    *lines, verdict = objects(Path("r.jsonl").read_text())
    assert [line["document"] for line in lines] == ["doc-2", "doc-7"]
    assert (lines[0]["file"], lines[0]["line"]) == ("new.jsonl", 3)
    assert lines[1]["matches"][0]["key"] == "known-30"
    assert verdict["matched"] == 2 and not verdict["passed"]
    log = json.loads(Path("r.sarif").read_text())
    assert list(faults(log)) == []
    places = [result["locations"][0]["physicalLocation"] for result in log["runs"][0]["results"]]
    assert [place["region"]["startLine"] for place in places] == [3, 8]
    page = Path("r.html").read_text()
    assert "doc-2" in page and "known-5" in page and text(30)[:40] in page


@pytest.mark.parametrize("kind", ["jsonl", "sarif", "html"])
def test_a_report_goes_to_standard_output(
    run: Run, known: str, collection: str, kind: str
) -> None:
    run("gate", "--against", known, collection, "--report", "r", "--report-format", kind, code=1)
    shown = run("gate", "--against", known, collection, "--report-format", kind, code=1).stdout
    assert shown.startswith({"jsonl": '{"kind"', "sarif": '{"$schema"', "html": "<!DOCTYPE"}[kind])
    assert len(shown) == pytest.approx(len(Path("r").read_text()), abs=8)  # but for the seconds


def test_json_prints_lines(run: Run, known: str, collection: str, objects: Any) -> None:
    done = run("gate", "--against", known, collection, "--json", "--report", "r.html", code=1)
    assert [line["kind"] for line in objects(done.stdout)] == ["match", "match", "verdict"]


def test_bad_records_are_skipped_and_told(run: Run, known: str, collection: str) -> None:
    with Path(collection).open("a") as file:
        file.write("not json\n" + json.dumps({"id": "none", "text": ""}) + "\n")
    assert "new.jsonl:11" in run("gate", "--against", known, collection, code=4).stderr
    done = run("gate", "--against", known, collection, "--max-errors", 1, "--report", "r.sarif",
               code=1)
    assert "skipped 1 bad record" in done.stderr and "no fingerprint" in done.stderr
    (run_of_log,) = json.loads(Path("r.sarif").read_text())["runs"]
    assert run_of_log["properties"]["documents"] == 11
    assert run_of_log["properties"]["withoutFingerprint"] == 1
    (note,) = run_of_log["invocations"][0]["toolExecutionNotifications"]
    assert "new.jsonl:11" in note["message"]["text"]


def test_hostile_documents_are_reported_safely(
    run: Run, write_jsonl: Callable[..., Path]
) -> None:
    name = HOSTILE.replace("\ud800", "")
    write_jsonl("k.jsonl", [{"id": name, "text": text(n)} for n in range(1)])
    run("build", "k.sim", "k.jsonl", "--sketch-bits", 512, "-q")
    records = [{"id": name, "text": text(0)}, {"id": "é" * 30_000, "text": text(0)},
               {"id": "mark", "text": f"<img src=x onerror=alert(1)> {text(0)}"}]
    write_jsonl("new.jsonl", records)
    done = run("gate", "--against", "k.sim", "new.jsonl", "--report", "r.html", "--report",
               "r.sarif", "--report", "r.jsonl", code=1)
    assert "\x1b" not in done.stderr
    page = Path("r.html").read_text()
    assert "<script" not in page and "<img" not in page and len(page) < 30_000
    assert not {"\u202e", "\x1b", "\x00"} & set(page)
    assert list(faults(json.loads(Path("r.sarif").read_text()))) == []
    lines = Path("r.jsonl").read_text().splitlines()
    assert [json.loads(line)["document"] for line in lines[:3]] == [
        record["id"] for record in records
    ]
    assert "\x1b" not in run("gate", "--against", "k.sim", "new.jsonl", code=1).stdout


def test_fingerprints_are_checked_by_the_radius(run: Run, known: str) -> None:
    with simindex.open(known) as index:
        rows = next(index.rows()).rows[:3] ^ np.uint64([[0], [1], [(1 << 40) - 1]])
    np.save("new.npy", rows[:, 0])
    done = run("gate", "--against", known, "new.npy", "-d", 5, code=1)
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == [
        "new.npy:0", "new.npy:1",
    ]
    assert "within 5 of 64 bits" in done.stderr
    assert "of 64 bits" in run("gate", "--against", known, "new.npy", code=1).stderr
    assert "sketches" in run(
        "gate", "--against", known, "new.npy", "--similarity", 0.9, code=2
    ).stderr
    run("export", known, "-o", "rows.jsonl", "-q")
    done = run("gate", "--against", known, "rows.jsonl", "--similarity", 0.9, code=1)
    assert "40 of 40 documents" in done.stderr


def test_texts_need_a_recipe(run: Run, collection: str) -> None:
    with simindex.open("i.sim", "n", options=simindex.IndexOptions()) as index:
        index.append(np.arange(9, dtype=np.uint64))
    said = run("gate", "--against", "i.sim", collection, "--report", "r.html", code=2).stderr
    assert "i.sim stores no recipe" in said and "fingerprints" in said
    assert not Path("r.html").exists()


def test_many_matches_are_limited(run: Run, write_jsonl: Callable[..., Path]) -> None:
    write_jsonl("k.jsonl", [{"id": f"k{n}", "text": text(1)} for n in range(30)])
    run("build", "k.sim", "k.jsonl", "-q")
    write_jsonl("new.jsonl", [{"id": "a", "text": text(1)}])

    def matches(*options: Any) -> tuple[int, bool]:
        done = run("gate", "--against", "k.sim", "new.jsonl", "--json", *options, code=1)
        found = json.loads(done.stdout.splitlines()[0])
        return len(found["matches"]), found["more"]

    assert matches() == (10, True)
    assert matches("--limit", 29) == (29, True)
    assert matches("--limit", 30) == (30, False)


def test_equal_documents_are_all_reported(run: Run, write_jsonl: Callable[..., Path]) -> None:
    write_jsonl("k.jsonl", [{"id": f"k{n}", "text": text(n)} for n in range(3)])
    run("build", "k.sim", "k.jsonl", "-q")
    write_jsonl("new.jsonl", [{"id": f"d{n}", "text": text((0, 1, 9)[n % 3])} for n in range(12)])
    done = run("gate", "--against", "k.sim", "new.jsonl", code=1)
    told = [line.split("\t")[:3] for line in done.stdout.splitlines()]
    assert told == [
        [f"new.jsonl:{n + 1}", f"d{n}", f"k{n % 3}"] for n in range(12) if n % 3 < 2
    ]
    assert "8 of 12 documents" in done.stderr


def test_standard_input_and_a_memory_limit_give_the_same(
    run: Run, known: str, collection: str
) -> None:
    usual = run("gate", "--against", known, collection, code=1).stdout
    limited = run("gate", "--against", known, collection, "--memory-limit", "4G", code=1).stdout
    piped = run("gate", "--against", known, "-", input=Path(collection).read_text(), code=1)
    assert limited == usual
    assert [line.split("\t")[1:] for line in piped.stdout.splitlines()] == [
        line.split("\t")[1:] for line in usual.splitlines()
    ]
    assert "give at least" in run(
        "gate", "--against", known, collection, "--memory-limit", "1M", code=2
    ).stderr


def test_quiet_prints_no_summary(run: Run, known: str, collection: str) -> None:
    assert run("gate", "--against", known, collection, "-q", code=1).stderr == ""
