"""`dedup --keep` over the whole of inputs that can be read twice, against brute force."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from word_families import families

import simindex
from simindex.cli import program
from simindex.cli.dedup.ranks import date
from simindex.cli.dedup.two_readings import Ranking
from simindex.pairs import stored_winners

Run = Callable[..., Any]

RECIPE = simindex.Recipe()

WORDS = [f"w{n}" for n in range(8)]

DOCUMENTS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(WORDS), max_size=6),
        st.sampled_from([None, "2024-05-01", "2024-05-02T10:00:00Z", "2023", 1.7e9, 1.8e12]),
        st.integers(0, 3),
    ),
    max_size=25,
)
"""Words, date and number: texts are often equal, or near within a wide radius."""


def lines_of(documents: list[Any]) -> list[str]:
    return [
        json.dumps({"id": f"d{n}", "text": " ".join(words), "n": number, "date": when})
        for n, (words, when, number) in enumerate(documents)
    ]


def keys_of(index: simindex.Index) -> list[Any]:
    return sorted(key for batch in index.rows() for key in batch.keys or ())


def expected(
    documents: list[Any], policy: str, h: int, stored: Sequence[Any] = ()
) -> dict[str, int]:
    """Greedy by rank: what each dropped document's nearest kept one of better rank is away, or its
    nearest stored one.
    """
    texts = [" ".join(words) for words, _, _ in documents]
    prints = [RECIPE.fingerprint(text) for text in texts]
    ranks = {
        "longest": lambda n: len(texts[n]),
        "highest:n": lambda n: documents[n][2],
        "newest": lambda n: -np.inf if (when := date(documents[n][1])) is None else when,
    }
    order = sorted(range(len(texts)), key=lambda n: (-ranks[policy](n), n))
    kept: list[int] = []
    lost: dict[str, int] = {}
    for n in order:
        if not len(prints[n]):
            continue
        row = prints[n].rows[0, 0]
        better = [*stored, *(prints[k].rows[0, 0] for k in kept)]
        near = [int(np.bitwise_count(one ^ row)) for one in better]
        if min(near, default=99) <= h:
            lost[f"d{n}"] = min(near)
        else:
            kept.append(n)
    return lost


@settings(max_examples=40)
@given(
    DOCUMENTS, st.sampled_from(["longest", "newest", "highest:n"]), st.sampled_from([0, 6, 20]),
    st.integers(1, 9),
)  # fmt: skip
@pytest.mark.slow
def test_what_is_kept_is_that_of_brute_force_whatever_the_buffer(
    documents: list[Any], policy: str, h: int, buffer: int
) -> None:
    lines = lines_of(documents)
    with tempfile.TemporaryDirectory() as folder:
        path, audit = Path(folder) / "a.jsonl", Path(folder) / "audit"
        path.write_text("".join(line + "\n" for line in lines))
        done = CliRunner().invoke(program, [
            "dedup", str(path), "--keep", policy, "-d", str(h), "--buffer", str(buffer),
            "--audit", str(audit), "--json",
        ])  # fmt: skip
        assert done.exit_code == 0, done.stderr
        lost = expected(documents, policy, h)
        assert done.stdout.splitlines() == [
            line for n, line in enumerate(lines) if f"d{n}" not in lost
        ]
        told = [json.loads(line) for line in audit.read_text().splitlines()]
        assert {one["dropped"]: one["distance"] for one in told} == lost
        assert not {one["lost_to"] for one in told} & lost.keys()
        summary = json.loads(done.stderr.splitlines()[-1])
        assert (summary["documents"], summary["dropped"]) == (len(lines), len(lost))


@settings(max_examples=20)
@given(
    DOCUMENTS, DOCUMENTS, st.sampled_from(["longest", "newest", "highest:n"]),
    st.sampled_from([0, 6, 20]), st.integers(1, 9),
)  # fmt: skip
@pytest.mark.slow
def test_what_earlier_runs_printed_wins_whatever_its_rank(
    earlier: list[Any], documents: list[Any], policy: str, h: int, buffer: int
) -> None:
    """And of the others the best: brute force, over runs of 0 to 25 documents through an index."""
    prints = [RECIPE.fingerprint(" ".join(words)) for words, _, _ in documents]
    with tempfile.TemporaryDirectory() as folder, simindex.open(
        Path(folder, "i.sim"), "n", options=simindex.IndexOptions(keys="str", recipe=RECIPE)
    ) as index:
        names = [f"e{n}" for n in range(len(earlier))]
        index.append(RECIPE.batch([" ".join(words) for words, _, _ in earlier], keys=names))
        index.close()
        path, audit = Path(folder) / "a.jsonl", Path(folder) / "audit"
        lines = lines_of(documents)
        path.write_text("".join(line + "\n" for line in lines))
        command = [
            "dedup", str(path), "--keep", policy, "-d", str(h), "--buffer", str(buffer),
            "--audit", str(audit), "--json", "--index", f"{folder}/i.sim",
        ]  # fmt: skip
        done = CliRunner().invoke(program, command)
        assert done.exit_code == 0, done.stderr
        before = [RECIPE.fingerprint(" ".join(words)) for words, _, _ in earlier]
        stored = [one.rows[0, 0] for one in before if len(one)]
        lost = expected(documents, policy, h, stored)
        assert done.stdout.splitlines() == [
            line for n, line in enumerate(lines) if f"d{n}" not in lost
        ]
        told = [json.loads(line) for line in audit.read_text().splitlines()]
        assert {one["dropped"]: one["distance"] for one in told} == lost
        with simindex.open(Path(folder, "i.sim")) as again:
            assert keys_of(again) == sorted(
                [f"e{n}" for n, one in enumerate(before) if len(one)]
                + [f"d{n}" for n, one in enumerate(prints) if len(one) and f"d{n}" not in lost]
            )
        done = CliRunner().invoke(program, command)
        assert json.loads(done.stderr.splitlines()[-1])["kept"] == sum(not len(p) for p in prints)


def test_names_that_an_index_has_are_made_anew(run: Run, tmp_path: Path) -> None:
    """A file without ids has other records than when the index saw it."""
    texts = ["one two three four five", "six seven eight nine ten", "eleven twelve thirteen"]
    for some in (texts[:1], texts[1:]):
        (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in some))
        run("dedup", "a.jsonl", "--index", "i.sim", "--keep", "longest", "-q")
    with simindex.open("i.sim") as index:
        assert keys_of(index) == ["a.jsonl:1", "a.jsonl:1#2", "a.jsonl:2"]
    done = run("dedup", "a.jsonl", "--index", "i.sim", "--keep", "longest", "--audit", "r.jsonl")
    assert "kept 0 of 2 documents, dropped 0" in done.stderr and "2 that i.sim has" in done.stderr
    told = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert [(one["dropped"], one["why"]) for one in told] == [
        ("a.jsonl:1#2", "same id"), ("a.jsonl:2", "same id"),
    ]


def kept(run: Run, *options: object) -> tuple[list[str], str]:
    done = run("dedup", *options)
    return [json.loads(line)["id"] for line in done.stdout.splitlines()], done.stderr


def test_each_policy_keeps_its_own(run: Run, three: Path) -> None:
    assert kept(run, three, "--keep", "longest", "--buffer", 1)[0] == ["b", "c"]
    assert kept(run, three, "--keep", "highest:n", "--buffer", 1)[0] == ["b", "c"]
    names, said = kept(run, three, "--keep", "newest", "--buffer", 1)
    assert names == ["a", "c"]
    assert "1 document without a date in date, time, timestamp" in said
    names, said = kept(run, three, "--keep", "newest", "--date-field", "n")
    assert names == ["b", "c"] and "without a date" not in said
    (one, two, three_) = map(json.loads, run(
        "dedup", three, "--keep", "newest", "--mark", "-q"
    ).stdout.splitlines())
    assert two["near_duplicate_of"] == {"key": "a", "distance": 0}
    assert one["near_duplicate_of"] is three_["near_duplicate_of"] is None


def test_a_buffer_is_told_to_be_decided_in(run: Run, three: Path) -> None:
    text = three.read_text()
    said = run("dedup", "--keep", "longest", "--buffer", 1, input=text).stderr
    assert "decided within each buffer of 1 document, because --buffer is given" in said
    assert "decided" not in run("dedup", three, "--keep", "longest", "--index", "i.sim").stderr
    assert "--date-field needs" in run("dedup", three, "--date-field", "n", code=2).stderr


@pytest.mark.parametrize("change", ["longer", "another", "empty"])
def test_inputs_that_change_between_the_readings_are_refused(
    run: Run, three: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    before, decide = three.read_text(), Ranking.decide
    renamed = before.replace('"a"', '"x"')
    after = {"longer": before + renamed, "another": renamed, "empty": ""}[change]

    def changing(self: Any, *args: Any) -> None:
        decide(self, *args)
        three.write_text(after)

    monkeypatch.setattr(Ranking, "decide", changing)
    said = run("dedup", three, "--keep", "longest", code=4).stderr
    assert "the first reading" in said and "run it again" in said


def test_a_record_without_a_rank_is_reported_once(run: Run, three: Path) -> None:
    three.write_text(three.read_text() + '{"id": "d", "text": "no number in it"}\noops\n')
    names, said = kept(run, three, "--keep", "highest:n", "--max-errors", 2)
    assert names == ["b", "c"]
    assert said.count("has no field 'n'") == said.count("not JSON") == 1


def test_idf_is_learned_before(run: Run, three: Path) -> None:
    assert kept(run, three, "--keep", "longest", "--weighting", "tfidf")[0] == ["b", "c"]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("1970-01-02", 86400), ("1970-01-02T00:00:01Z", 86401),
        ("1970-01-02 01:00:00+01:00", 86400),
        ("19700102", 86400), (86400, 86400), ("86400.5", 86400.5), (1.7e12, 1.7e9), ("", None),
        ("soon", None), (None, None), (True, None), (float("nan"), None), (10**400, None),
        ([], None),
        ("1970-01-02T00:00:00.123456789Z", 86400.123456),
    ],
)  # fmt: skip
def test_dates_are_iso_or_numbers(value: Any, seconds: float | None) -> None:
    assert date(value) == (None if seconds is None else pytest.approx(seconds, abs=1e-6))


@pytest.mark.parametrize("keep", ["first", "longest"])
def test_repeated_ids_are_told_apart_by_their_places(
    run: Run, tmp_path: Path, keep: str
) -> None:
    texts = ["the quick brown fox jumps over the lazy dog and runs", "pack my box with jugs now"]
    lines = [json.dumps({"id": "same", "text": text}) for text in (*texts, *texts[::-1])]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    run("dedup", "a.jsonl", "-d", 0, "--keep", keep, "--audit", "audit")
    told = [json.loads(line) for line in (tmp_path / "audit").read_text().splitlines()]
    assert [(one["dropped_at"], one["lost_to_at"]) for one in told] == [
        ("a.jsonl:3", "a.jsonl:2"), ("a.jsonl:4", "a.jsonl:1")
    ]


@pytest.mark.parametrize("more", [("--verify-text",), ("--keep", "longest"),
                                  ("--keep", "longest", "--verify-text")])
def test_stored_rows_are_asked_for_by_weights(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    """Once they are many: with nearly the weights of the recipe, and nearly all is dropped that an
    exact search drops."""
    texts = families(Random(3), 12)
    lines = [json.dumps({"id": f"{n}t", "text": text}) for n, text in enumerate(texts)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    recipe = simindex.Recipe(weighting="tf", ngram=1, sketch_bits=256)
    weights = recipe.batch(texts).weights
    assert weights is not None
    asked: list[Any] = []
    query = simindex.Index.query

    def noted(index: simindex.Index, batch: simindex.Batch, **given: Any) -> Any:
        asked.append(batch.weights)
        return query(index, batch, **given)

    call = ("dedup", "a.jsonl", "--weighting", "tf", "--ngram", 1, "--sketch-bits", 256,
            "--similarity", 0.85, "--recall", 0.99, "--buffer", 16, *more)
    monkeypatch.setattr(simindex.Index, "query", noted)
    exact = run(*call).stdout.splitlines()
    assert asked and all(one is None for one in asked)
    asked.clear()
    monkeypatch.setattr(stored_winners, "EXACT_ROWS", -1)
    found = run(*call).stdout.splitlines()
    assert all(one is not None for one in asked)
    for row in np.concatenate(asked):
        assert (np.abs(weights - row) <= np.abs(weights) / 128).all(axis=1).any()
    assert len(exact) < 0.6 * len(texts)
    assert len(set(exact) ^ set(found)) <= len(exact) / 10
