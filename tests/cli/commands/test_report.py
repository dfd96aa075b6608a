"""`simindex report`: the page about an index, from the shell."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gate_findings import HOSTILE
from index_report import Page

import simindex

Run = Callable[..., Any]

WORDS = [f"{a}{b}" for a in "abcdefgh" for b in ("ten", "ling", "oro", "umba", "ish")]


def text(seed: int) -> str:
    return " ".join(np.random.default_rng(seed).choice(WORDS, 80))


def records() -> list[dict[str, str]]:
    """Ten documents alone, and two families: of four, of which one has another word, and of two."""
    edited = text(100).split()
    edited[40] = "changed"
    family = [text(100), text(100), " ".join(edited), text(100)]
    return [
        *({"id": f"alone-{n}", "text": text(n)} for n in range(10)),
        *({"id": f"family-{n}", "text": one} for n, one in enumerate(family)),
        {"id": "pair-0", "text": text(200)}, {"id": "pair-1", "text": text(200)},
    ]


@pytest.fixture
def built(run: Run, write_jsonl: Callable[..., Path]) -> str:
    write_jsonl("pages.jsonl", records())
    run("build", "i.sim", "pages.jsonl", "-q", "--sketch-bits", 512)
    return "i.sim"


def test_a_page_tells_what_is_in_the_index(run: Run, built: str) -> None:
    done = run("report", built, "-o", "r.html")
    assert done.stdout == "" and "16 rows in r.html" in done.stderr
    told = Page(Path("r.html").read_text()).text
    for piece in ("i.sim", "16 rows", "64 + 512", "2 clusters", "10 of 16 documents have no",
                  "family-", "pair-0", "4 rows whose fingerprint", "psm", "With --texts INPUT"):
        assert piece in told, piece
    assert "alone-" not in told


def test_differences_are_shown_of_texts_that_are_given(run: Run, built: str) -> None:
    run("report", built, "-o", "r.html", "--texts", "pages.jsonl")
    page = Path("r.html").read_text()
    assert "changed" in page and ("<ins>changed</ins>" in page or "<del>changed</del>" in page)
    assert "The words are the same." in page


def test_files_that_keys_name_are_not_opened(run: Run, write_jsonl: Callable[..., Path]) -> None:
    """An index may come from somebody else, and its keys may name any file."""
    Path("secret.txt").write_text("a secret that nobody asked to publish")
    write_jsonl("k.jsonl", [{"id": name, "text": text(1)} for name in ("secret.txt", "other")])
    run("build", "i.sim", "k.jsonl", "-q")
    run("report", "i.sim", "-o", "r.html", "--texts", "k.jsonl")
    assert "nobody asked" not in Path("r.html").read_text()


def test_so_many_clusters_and_documents_are_shown(run: Run, built: str) -> None:
    def page(*options: Any) -> str:
        run("report", built, "-o", "r.html", *options)
        return Path("r.html").read_text()

    assert [page("--clusters", n).count('class="family"') for n in range(3)] == [0, 1, 2]
    assert "1 more cluster:" in page("--clusters", 1)
    assert "3 more documents" in page("--members", 1)
    assert "more documents" not in page("--members", 4)


def test_without_clusters_no_pairs_are_looked_for(
    run: Run, built: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **named: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(simindex.Index, "pairs", refuse)
    monkeypatch.setattr(simindex.Index, "clusters", refuse)
    run("report", built, "-o", "r.html", "--no-clusters")
    page = Path("r.html").read_text()
    assert 'id="distances"' not in page and 'id="contents"' in page


@pytest.mark.parametrize(("options", "code", "said"), [
    ([], 2, "--out"),
    (["-o", "i.sim/r.html"], 2, "the index i.sim"),
    (["-o", "none/r.html"], 2, "-o none/r.html"),
    (["-o", "pages.jsonl", "--texts", "pages.jsonl"], 2, "the input pages.jsonl"),
    (["-o", "r.html", "--texts", "none.jsonl"], 4, "none.jsonl"),
    (["-o", "r.html", "--members", "0"], 2, "--members"),
    (["-o", "r.html", "-d", "65"], 2, "--distance"),
    (["-o", "r.html", "--memory-limit", "1"], 2, "--memory-limit"),
])
def test_wrong_calls_leave_no_page(
    run: Run, built: str, options: list[str], code: int, said: str
) -> None:
    before = Path("pages.jsonl").read_text()
    assert said in run("report", built, *options, code=code).stderr
    assert not Path("r.html").exists() and Path("pages.jsonl").read_text() == before


def test_a_missing_index_is_named(run: Run) -> None:
    assert "none.sim" in run("report", "none.sim", "-o", "r.html", code=3).stderr


def test_an_index_of_ids_has_no_texts(run: Run) -> None:
    with simindex.open("i.sim", "n", options=simindex.IndexOptions()) as index:
        index.append(np.array([1, 1, 3, 1 << 60], np.uint64), ids=[7, 8, 9, 10])
    Path("a.txt").write_text("one two")
    assert "--texts" in run("report", "i.sim", "-o", "r.html", "--texts", "a.txt", code=2).stderr
    run("report", "i.sim", "-o", "r.html")
    told = Page(Path("r.html").read_text()).text
    assert "an unknown recipe" in told and "equal" in told


@pytest.mark.parametrize("options", [
    {}, {"keys": True}, {"bits": 128}, {"recipe": simindex.Recipe()}, {"times": True},
])
def test_an_empty_index_has_a_page(run: Run, options: dict[str, Any]) -> None:
    simindex.open("i.sim", "n", options=simindex.IndexOptions(**options)).close()
    run("report", "i.sim", "-o", "r.html")
    assert "0 rows" in Page(Path("r.html").read_text()).text


def test_wide_rows_and_deleted_rows_are_told(run: Run) -> None:
    options = simindex.IndexOptions(bits=256, structures=("psm", "issl"), times=True)
    rng = np.random.default_rng(1)
    with simindex.open("i.sim", "n", options=options) as index:
        index.append(rng.integers(0, 1 << 63, (500, 4), np.uint64), ids=np.arange(500))
        index.compact(full=True)
        index.delete(ids=[3, 4])
    run("report", "i.sim", "-o", "r.html")
    told = Page(Path("r.html").read_text()).text
    assert "498 rows" in told and "2 rows, whose space" in told and "oldest row" in told
    assert "issl" in told and "No two rows are within" in told


def test_hostile_keys_and_texts_act_nowhere(run: Run, write_jsonl: Callable[..., Path]) -> None:
    names = [HOSTILE.replace("\ud800", ""), "é" * 32_000, "a\nb\tc", "\u2066\u2067\u202d", "%", "-"]
    write_jsonl("k.jsonl", [
        {"id": name, "text": f"{text(1)} <script>alert({n})</script> \u202e\x1b[31m word{n}"}
        for n, name in enumerate(names)
    ])
    run("build", "i.sim", "k.jsonl", "-q")
    done = run("report", "i.sim", "-o", "r.html", "--texts", "k.jsonl", "-d", 20)
    page = Path("r.html").read_text()
    assert Page(page).tags.count("script") == 1
    assert not {"\u202e", "\u2066", "\x1b", "\x00"} & set(page) and "\x1b" not in done.stderr
    assert len(page) < 60_000


def test_the_page_goes_to_standard_output_or_replaces_a_file(run: Run, built: str) -> None:
    shown = run("report", built, "-o", "-").stdout
    Page(shown)
    Path("r.html").write_text("old")
    done = run("report", built, "-o", "r.html", "--json", "-q")
    assert Path("r.html").read_text().startswith("<!DOCTYPE html>")
    told = json.loads(done.stdout)
    assert (told["report"], told["rows"], told["clusters"]) == ("r.html", 16, 2)
    assert told["bytes"] == Path("r.html").stat().st_size and done.stderr == ""


def test_a_similarity_decides_what_is_near(run: Run, built: str) -> None:
    run("report", built, "-o", "r.html", "--similarity", 0.8)
    told = Page(Path("r.html").read_text()).text
    for piece in ("Near-duplicates have a similarity of 0.8 or more", "bits, of candidates",
                  "similarity of 0.8 asked, with the sketch", "pairs of different sketches",
                  "near enough to the representative", "2 clusters"):
        assert piece in told, piece
    with simindex.open(built, "r") as index:
        found = index.clusters(similarity=0.8, singletons=False)
        estimates = found.similarity
    assert estimates is not None
    least = float(estimates.min())
    assert 0.8 <= least < 1 and f"{least:.3f}" in told
    usual = Page(Path("r.html").read_text()).text
    run("report", built, "-o", "r.html")
    assert "Near-duplicates have" not in Page(Path("r.html").read_text()).text != usual
    run("build", "bare.sim", "pages.jsonl", "-q")
    run("report", "bare.sim", "-o", "r.html", "--similarity", 0.8)
    bare = Page(Path("r.html").read_text()).text
    assert "The radius for a similarity of 0.8 decides, because there are no sketches." in bare
    assert "they differ in at most 16 of 64 bits. Some of them are less similar." in bare
    assert "Near-duplicates have" not in bare
    for options, problem in (
        (("--similarity", 0.8, "-d", 3), "leave out --distance"),
        (("--measure", "jaccard"), "none is given"),
        (("--similarity", 0.8, "--measure", "jaccard"), "compares sets of features"),
        (("--similarity", 0.2), "from 0.5 to 1"),
    ):
        assert problem in run("report", built, "-o", "x.html", *options, code=2).stderr
    assert not Path("x.html").exists()
